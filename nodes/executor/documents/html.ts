/**
 * Converts the HTML that `mammoth` produces from a text document to Markdown: headings, paragraphs,
 * lists, tables, links, emphasis, deleted text and notes. A nested table becomes part of the text
 * of the cell that contains it.
 */
import { Parser } from 'htmlparser2'
import { allRows, MAX_MARKDOWN, tableOf } from './markdown.ts'

interface Block {
  readonly text: string
  /** Whether the block belongs to a list item or a note. No empty line separates such blocks. */
  readonly tight: boolean
}
interface List {
  readonly ordered: boolean
  count: number
}
interface Inline {
  readonly tag: string
  /** Offset of the element's content in the text of the block. */
  readonly at: number
  readonly href?: string | undefined
}

const marks: Readonly<Record<string, string>> = { strong: '**', em: '*', s: '~~' }
const heading = /^h([1-6])$/
/** Matches the ids of notes and of references to notes, as `mammoth` writes them. */
const note = /^#?(?:footnote|endnote)-(ref-)?/

/** Wraps a text in marks. Spaces at its ends stay outside the marks. */
function surround(text: string, before: string, after = before): string {
  const inner = text.trim()
  if (inner === '') return text
  const start = text.indexOf(inner)
  return text.slice(0, start) + before + inner + after + text.slice(start + inner.length)
}

/** Returns the Markdown, which may be longer than `MAX_MARKDOWN` by one block. */
export function markdownOfHtml(html: string): string {
  const blocks: Block[] = []
  const lists: List[] = []
  const inlines: Inline[] = []
  let [text, prefix, size, notes, tables] = ['', '', 0, 0, 0]
  let rows: string[][] = []
  let span = 1

  const indent = (): string =>
    lists
      .slice(0, -1)
      .map(({ ordered, count }) => ' '.repeat(ordered ? `${count}. `.length : 2))
      .join('')
  /** Ends the block or, inside a table, only the line. */
  const end = (): void => {
    inlines.length = 0
    if (tables > 0) {
      if (text !== '' && !text.endsWith('\n')) text += '\n'
      return
    }
    const content = text.trim()
    text = ''
    if (content === '') return
    const margin = lists.length > 0 ? indent() : ''
    const hanging = `\n${margin}${' '.repeat(lists.length > 0 ? prefix.length : 0)}`
    const block = margin + prefix + content.replaceAll('\n', hanging)
    blocks.push({ text: block, tight: lists.length > 0 })
    size += block.length
    // Further paragraphs of a list item are indented like its first paragraph.
    prefix = lists.length > 0 ? ' '.repeat(prefix.length) : ''
  }
  const closeInline = ({ tag, at, href }: Inline): void => {
    const inner = text.slice(at)
    text = text.slice(0, at)
    const mark = marks[tag]
    if (mark !== undefined) text += surround(inner, mark)
    else if (href === undefined) text += inner
    else if (note.test(href))
      text += note.exec(href)?.[1] === undefined ? `[^${inner.replace(/\D/g, '')}]` : ''
    else text += href.startsWith('#') ? inner : surround(inner, '[', `](${href})`)
  }

  const parser = new Parser({
    onopentag(tag, { href, id = '', alt, colspan }) {
      if (size > MAX_MARKDOWN) return
      const level = heading.exec(tag)?.[1]
      if (level !== undefined) {
        end()
        if (tables === 0) prefix = `${'#'.repeat(Number(level))} `
      } else if (tag in marks || tag === 'a') inlines.push({ tag, at: text.length, href })
      else if (tag === 'ol' || tag === 'ul') {
        end()
        lists.push({ ordered: tag === 'ol', count: 0 })
      } else if (tag === 'li') {
        end()
        const list = lists.at(-1)
        if (list) list.count++
        if (note.test(id)) prefix = `[^${++notes}]: `
        else prefix = list?.ordered ? `${list.count}. ` : '- '
        if (tables > 0) text += prefix
      } else if (tag === 'br') text += '\n'
      else if (tag === 'img' && alt) text += `[picture: ${alt.replaceAll('\n', ' ')}]`
      else if (tag === 'p') {
        if (lists.length === 0 && tables === 0) prefix = ''
      } else if (tag === 'table') {
        end()
        if (++tables === 1) rows = []
      } else if (tag === 'tr' && tables === 1) rows.push([])
      else if (tag === 'td' || tag === 'th') {
        if (tables > 1) text += ' '
        else [text, span] = ['', Math.max(1, Number(colspan) || 1)]
      }
    },
    ontext(more) {
      if (size <= MAX_MARKDOWN) text += more
    },
    onclosetag(tag) {
      if (size > MAX_MARKDOWN) return
      if (tag in marks || tag === 'a') {
        const inline = inlines.pop()
        if (inline) closeInline(inline)
      } else if (tag === 'p' || tag === 'li' || heading.test(tag)) {
        end()
        if (lists.length === 0) prefix = ''
      } else if (tag === 'ol' || tag === 'ul') {
        end()
        lists.pop()
        prefix = ''
      } else if ((tag === 'td' || tag === 'th') && tables === 1) {
        rows.at(-1)?.push(text, ...Array<string>(Math.min(span, 200) - 1).fill(''))
        text = ''
      } else if (tag === 'table' && --tables === 0) {
        const table = tableOf(allRows(rows))
        text = ''
        if (table !== '') blocks.push({ text: table, tight: false })
        size += table.length
      }
    },
  })
  parser.end(html)
  end()
  return blocks
    .map((block, index) => {
      const before = blocks[index - 1]
      return `${!before ? '' : before.tight && block.tight ? '\n' : '\n\n'}${block.text}`
    })
    .join('')
}
