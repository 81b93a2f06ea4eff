/**
 * The commands of a document: its blocks that are fenced as ```sh. A comment directly above a block
 * can mark it. A block without a mark is run unchanged. The mark `<!-- not run: reason -->`
 * excludes a block. `<!-- runs until stopped -->` marks a command that a reader keeps running in a
 * separate terminal.
 */

export interface Block {
  /** The line of the document with the block's first command, counted from 1. */
  readonly line: number
  readonly text: string
  readonly mark: 'run' | 'background' | 'skip'
  readonly reason?: string
}

const FENCE = /^```(\w*)\s*$/
const SKIP = /^<!-- not run: (.+) -->$/
const BACKGROUND = '<!-- runs until stopped -->'

/**
 * Returns the blocks of a Markdown text.
 * @throws {Error} when a mark is unknown or is not directly above a block.
 */
export function blocksOf(markdown: string): Block[] {
  const lines = markdown.split('\n')
  const blocks: Block[] = []
  let open: { readonly language: string; readonly from: number } | undefined
  lines.forEach((line, index) => {
    const fence = FENCE.exec(line)
    if (!open) {
      if (/^<!-- (not run|runs until)/.test(line)) checkMark(lines, index)
      if (fence) open = { language: fence[1] ?? '', from: index }
    } else if (line === '```') {
      const text = lines.slice(open.from + 1, index).join('\n')
      if (open.language === 'sh')
        blocks.push({ line: open.from + 2, text, ...markOf(lines[open.from - 1] ?? '') })
      open = undefined
    }
  })
  return blocks
}

const markOf = (line: string): Pick<Block, 'mark' | 'reason'> => {
  const reason = SKIP.exec(line)?.[1]
  if (reason !== undefined) return { mark: 'skip', reason }
  return { mark: line === BACKGROUND ? 'background' : 'run' }
}

function checkMark(lines: readonly string[], index: number): void {
  const line = lines[index] ?? ''
  if (line !== BACKGROUND && !SKIP.test(line)) throw new Error(`line ${index + 1}: ${line}`)
  if (lines[index + 1] !== '```sh')
    throw new Error(`line ${index + 1}: the mark is not above a block of commands`)
}
