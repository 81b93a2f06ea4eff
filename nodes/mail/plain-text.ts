/**
 * Converts HTML to plain text, for messages without a plain-text part. Only the tokenizer of
 * `htmlparser2` is used, because the time that its parser and `html-to-text` need grows with the
 * square of the nesting depth.
 */
import { Tokenizer } from 'htmlparser2'

/** Elements whose content is not text. */
const HIDDEN: ReadonlySet<string> = new Set(['script', 'style'])
/** Elements that begin and end a line. */
const LINES = new RegExp(
  `^(${[
    'address|article|aside|blockquote|br|dd|div|dl|dt|figure|footer|form|h[1-6]|header|hr',
    'li|main|nav|ol|p|pre|section|table|tr|ul',
  ].join('|')})$`,
)
/** Elements that occur within a word. All other elements separate words. */
const INLINE =
  /^(a|abbr|b|big|cite|code|del|em|font|i|ins|kbd|mark|q|s|small|span|strong|sub|sup|tt|u|wbr)$/

/**
 * Returns the text of an HTML document: tags become line breaks or spaces, and character references
 * become characters. Scripts, styles and comments are omitted.
 * @param max number of characters after which the conversion stops. The result may be longer by one
 *   piece of text.
 */
export function plainTextOf(html: string, max: number): string {
  const parts: string[] = []
  let length = 0
  /** The last character of the text. */
  let last = '\n'
  let hidden: string | undefined
  let preformatted = 0

  const add = (text: string): void => {
    if (text === '') return
    parts.push(text)
    length += text.length
    last = text.at(-1) ?? ''
    if (length > max) tokenizer.pause()
  }
  const addSpace = (): void => {
    if (last !== ' ' && last !== '\n') add(' ')
  }
  const addLine = (): void => {
    if (last !== '\n') add('\n')
  }
  const addWords = (given: string): void => {
    const text = given.replace(/\s+/g, ' ')
    add(text.startsWith(' ') && (last === ' ' || last === '\n') ? text.slice(1) : text)
  }
  const addText = (text: string): void => {
    if (hidden !== undefined) return
    const [first = '', ...more] = preformatted > 0 ? text.split('\n') : [text]
    addWords(first)
    for (const line of more) {
      addLine()
      addWords(line)
    }
  }
  const addTag = (name: string): void => {
    if (hidden !== undefined || HIDDEN.has(name) || INLINE.test(name)) return
    if (LINES.test(name)) addLine()
    else addSpace()
  }
  const nameAt = (start: number, end: number): string => html.slice(start, end).toLowerCase()
  const nothing = (): void => {}

  const tokenizer = new Tokenizer(
    {},
    {
      onopentagname(start, end) {
        const name = nameAt(start, end)
        addTag(name)
        if (HIDDEN.has(name)) hidden ??= name
        if (name === 'pre') preformatted++
      },
      onclosetag(start, end) {
        const name = nameAt(start, end)
        if (hidden === name) hidden = undefined
        if (name === 'pre') preformatted--
        addTag(name)
      },
      ontext: (start, end) => addText(html.slice(start, end)),
      ontextentity: (character) => addText(String.fromCodePoint(character)),
      onattribdata: nothing,
      onattribend: nothing,
      onattribentity: nothing,
      onattribname: nothing,
      oncdata: nothing,
      oncomment: nothing,
      ondeclaration: nothing,
      onend: nothing,
      onopentagend: nothing,
      onprocessinginstruction: nothing,
      onselfclosingtag: nothing,
    },
  )
  tokenizer.write(html)
  tokenizer.end()
  return parts.join('').replaceAll(' \n', '\n').trim()
}
