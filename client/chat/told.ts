/** What a screen reader is told: new answers when they are whole, questions when they come, and ends that are no answers. */
import type { Entry } from './entries.ts'

/** Tells what is new each time; what was there the first time is not new. */
export function teller(): (entries: readonly Entry[]) => readonly string[] {
  let known: Set<string> | undefined
  return (entries) => {
    const news = entries.flatMap((entry) => {
      const words = wordsOf(entry)
      return words === undefined ? [] : [{ mark: `${entry.kind} ${entry.key}`, words }]
    })
    const fresh = known ? news.filter(({ mark }) => !known?.has(mark)) : []
    known = new Set([...(known ?? []), ...news.map(({ mark }) => mark)])
    return fresh.map(({ words }) => words)
  }
}

function wordsOf(entry: Entry): string | undefined {
  switch (entry.kind) {
    case 'message': {
      const { role, status, content } = entry.message
      const text = content
        .flatMap((block) => (block.type === 'text' ? [block.text] : []))
        .join(' ')
        .trim()
      return role === 'assistant' && status === 'final' && text !== ''
        ? `Agent: ${text}`
        : undefined
    }
    case 'question':
      return entry.interaction.status === 'pending'
        ? `Question: ${entry.interaction.title}`
        : undefined
    case 'end':
      return entry.turn.status === 'failed'
        ? 'The turn failed.'
        : entry.turn.status === 'cancelled'
          ? 'The turn was cancelled.'
          : undefined
  }
}
