/**
 * Hostile values for the fields that the console shows. Every text contains the mark of its field:
 * `q12q` at its start and `z12z` at its end. The marks reveal which fields a page shows, and
 * whether a text affects the words around it.
 */
import type { TextKind } from '../../../hostile/corpus/texts.ts'

/**
 * HTML that calls `hacked` if any part of it is executed. The inspection of the page reports such a
 * call.
 */
export const HTML =
  '<img src=x onerror=hacked()><script>hacked()</script></script><svg/onload=hacked()>' +
  '<iframe srcdoc="<script>parent.hacked()</script>"></iframe><style>*{display:none}</style>'
/** Markdown links and images with script, data and foreign URLs. */
const LINKS =
  '[a](javascript:hacked()) ![b](https://evil.invalid/b.png) <https://evil.invalid/> ' +
  '[c](data:text/html,<script>hacked()</script>) [d](//evil.invalid) [e](vbscript:hacked())'
/** Unclosed bidirectional controls, zero-width characters, and a right-to-left word. */
export const BIDI = '\u202Egnp.exe\u2066\u2067\u200F\u200B\uFEFF\u05E9\u05DC\u05D5\u05DD'
/** Joined emoji, a flag, and a letter with many combining marks. */
const SIGNS = `👩‍👩‍👧‍👦🏳️‍🌈🇩🇪e${'\u0301\u0335'.repeat(20)}`
const WORD = 'W'.repeat(300)

/** Maximum number of characters of a hostile text. */
const MAX_LENGTH = 4000
const marked = (mark: number, content: string, longest: number): string => {
  const end = ` z${mark}z`
  return `q${mark}q${content.slice(0, Math.max(0, longest - end.length - `q${mark}q`.length))}${end}`
}
/** Returns a hostile text for a field, of at most `longest` and at most `MAX_LENGTH` characters. */
export function hostileText(mark: number, longest = MAX_LENGTH): string {
  const most = Math.min(longest, MAX_LENGTH)
  if (most < 200) return marked(mark, ` ${BIDI}<b onclick=hacked()>${HTML}`, most)
  const parts = ` ${BIDI} ${HTML} ${LINKS} ${SIGNS} ${WORD}`
  return marked(mark, parts, most)
}

/** Number of nested levels of a deep value. The service accepts 64 levels in a whole body. */
const DEEP = 40
/** Returns a hostile JSON value: deep, with extreme numbers and with names of prototype members. */
export const hostileJson = (mark: number): Record<string, unknown> => ({
  text: hostileText(mark),
  [`<b onclick=hacked()>${BIDI}`]: 1,
  constructor: 'q',
  toString: 'q',
  hasOwnProperty: null,
  '': '',
  numbers: [Number.MAX_VALUE, 5e-324, -1.5e-300, Number.MAX_SAFE_INTEGER, -0],
  half: '\ud83d',
  deep: JSON.parse(`${'{"a":['.repeat(DEEP / 2)}1${']}'.repeat(DEEP / 2)}`),
  wide: Array.from({ length: 300 }, (_, n) => n),
})

/**
 * Returns the values to try for a field, as JSON texts. The first that the service accepts is used.
 */
export function choicesFor(kind: TextKind, mark: number, longest: number | undefined): string[] {
  const text = hostileText(mark, longest)
  // A value for fields that permit only some characters.
  const plain = marked(mark, `<b onclick=hacked()>${HTML}`, Math.min(longest ?? 100, 100))
  const names = [`q${mark}q`, `q${mark}q.constructor`, 'constructor', '__proto__']
  const texts = [text, plain].map((one) => JSON.stringify(one))
  const address = `https://evil.invalid/q${mark}q"><img src=x onerror=hacked()>`
  const own: Readonly<Partial<Record<TextKind, readonly unknown[]>>> = {
    expression: [`${JSON.stringify(text)} == ""`, `"q${mark}q" == ""`],
    template: [text, `\${{ ${JSON.stringify(text)} }}`],
    schema: [
      {
        type: 'object',
        title: text,
        description: text,
        properties: { constructor: { type: 'string', title: text, default: text } },
      },
    ],
    skill: [`---\nname: q${mark}q\ndescription: ${JSON.stringify(text)}\n---\n${text}`],
    url: [
      `javascript:hacked()//q${mark}q`,
      `data:text/html,q${mark}q<script>hacked()</script>`,
      address,
      encodeURI(address),
    ],
    json: [hostileJson(mark), { text }, [text]],
  }
  return [
    ...(own[kind] ?? []).map((one) => JSON.stringify(one)),
    ...texts,
    ...names.map((one) => JSON.stringify(one)),
  ]
}
