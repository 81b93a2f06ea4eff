/**
 * Derives the announcements for screen readers: complete answers, new questions, and failed or
 * cancelled turns. Each is announced once.
 */
import { isolate } from '../isolate.ts'
import type { Entry } from './entries.ts'
import { markdownText } from './markdown.ts'

/**
 * Returns a function that takes the current entries and returns one text with the announcements
 * that are new since the previous calls; empty if there are none. The first call returns none. A
 * second text in the same moment would replace the first one before it is read.
 * @param agent returns the name of the session's agent.
 */
export function announcer(agent: () => string): (entries: readonly Entry[]) => string {
  let known: Set<string> | undefined
  return (entries) => {
    const found = entries.flatMap((entry) => {
      const text = announcementOf(entry, agent())
      return text === undefined ? [] : [{ id: `${entry.kind} ${entry.key}`, text }]
    })
    const fresh = known ? found.filter(({ id }) => !known?.has(id)) : []
    known = new Set([...(known ?? []), ...found.map(({ id }) => id)])
    return fresh.map(({ text }) => text).join(' ')
  }
}

function announcementOf(entry: Entry, agent: string): string | undefined {
  switch (entry.kind) {
    case 'message': {
      const { role, status, content } = entry.message
      if (role !== 'assistant' || status !== 'final') return undefined
      const text = content
        .flatMap((block) => (block.type === 'text' ? [markdownText(block.text)] : []))
        .join(' ')
        .trim()
      return text === '' ? undefined : `${isolate(agent)}: ${isolate(text)}`
    }
    case 'question':
      return entry.interaction.status === 'pending'
        ? `Question: ${isolate(entry.interaction.title)}`
        : undefined
    case 'end':
      return entry.turn.status === 'failed'
        ? 'The turn failed.'
        : entry.turn.status === 'cancelled'
          ? 'The turn was cancelled.'
          : undefined
  }
}
