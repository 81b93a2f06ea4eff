/** Hostile files, workspaces and terminals, for the pages that show them. */
import type { OpenTerminal, WorkerTerminal } from '../../../../client/worker/terminals.ts'
import { BIDI, HTML, hostileText } from './texts.ts'

/**
 * Terminal output that attempts to set the title, write to the clipboard, add links, make the
 * terminal send replies, and move the cursor far away.
 */
export const ESCAPES = [
  '\u001b]0;hacked title\u0007\u001b]2;hacked title\u0007',
  `\u001b]52;c;${Buffer.from('hacked clipboard').toString('base64')}\u0007`,
  '\u001b]8;;javascript:hacked()\u0007script link\u001b]8;;\u0007 ',
  '\u001b]8;;https://evil.invalid/\u0007web link\u001b]8;;\u0007 ',
  '\u001b[c\u001b[6n\u001b]10;?\u0007\u001b[99999;99999Hfar\u001b[H\u001b[?1049h\u001b[?1049l',
  '\u001b]1337;File=inline=1:PHN2Zz4=\u0007\u001bP1$r0m\u001b\\',
].join('')

/**
 * Returns a terminal that prints hostile output and echoes its input.
 * @param heard receives the inputs.
 */
export function hostileTerminal(heard: string[]): OpenTerminal {
  return async () => {
    let data: (bytes: Uint8Array) => void = () => {}
    const terminal: WorkerTerminal = {
      write: (bytes) => {
        const text = Buffer.from(bytes).toString()
        heard.push(text)
        data(bytes)
      },
      resize: () => {},
      pause: () => {},
      resume: () => {},
      close: () => {},
      onData(listener) {
        data = listener
        data(Buffer.from(`${ESCAPES}${HTML} ${BIDI} ready`))
      },
      onExit: () => {},
    }
    return terminal
  }
}

/** Actions of a workspace that contains one file with a hostile name and content. */
export const hostileWorkspace = {
  'environment.files.list': ({ path = '' }: { readonly path?: unknown }) => ({
    path: path === '' ? '.' : path,
    entries: [
      {
        path: `${hostileText(900001, 180).replaceAll('/', '-')}.txt`,
        dir: false,
        size: 3,
        modified_at: '2026-01-01T00:00:00.000Z',
      },
    ],
    truncated: false,
  }),
  'environment.files.read': () => {
    const content = Buffer.from(hostileText(900002))
    return { content: content.toString('base64'), size: content.length, truncated: false }
  },
}

const SVG =
  '<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9" onload="parent.hacked()">' +
  '<script>parent.hacked()</script><image href="https://evil.invalid/i.png"/></svg>'
/** The header of a PNG that declares 60,000 by 60,000 pixels, without pixel data. */
const HUGE = Buffer.concat([
  Buffer.from('89504e470d0a1a0a0000000d49484452', 'hex'),
  Buffer.from('0000ea600000ea600802000000', 'hex'),
  Buffer.from('00000000', 'hex'),
])
/** Number of filler characters in the longest texts. */
export const HUGE_TEXT = 900_000
const long = (head: string): string => head + 'W'.repeat(HUGE_TEXT)

/** Hostile files: the end of the name, the media type and the bytes. */
export const files: readonly (readonly [ending: string, mime: string, bytes: Buffer])[] = [
  [
    'page.html',
    'text/html',
    Buffer.from(
      `${HTML}<h1>Rendered</h1><meta http-equiv=refresh content="0;https://evil.invalid">`,
    ),
  ],
  [
    'page.xhtml',
    'application/xhtml+xml',
    Buffer.from(`<html xmlns="http://www.w3.org/1999/xhtml">${HTML}</html>`),
  ],
  ['picture.svg', 'image/svg+xml', Buffer.from(SVG)],
  ['not.png', 'image/png', Buffer.from(HTML)],
  ['huge.png', 'image/png', HUGE],
  ['paper.pdf', 'application/pdf', Buffer.from(`%PDF-1.4 ${HTML}`)],
  [
    'sums.csv',
    'text/csv',
    Buffer.from(`=cmd|' /C calc'!A0,${hostileText(900003)}\n@SUM(1),"<b>"\n`),
  ],
  ['notes.md', 'text/markdown', Buffer.from(hostileText(900004))],
  ['change.diff', 'text/x-diff', Buffer.from(`+${hostileText(900005)}\n-${BIDI}\n`)],
  ['film.mp4', 'video/mp4', Buffer.from(HTML)],
  ['long.txt', 'text/plain', Buffer.from(long(HTML))],
  ['long.md', 'text/markdown', Buffer.from(long('*'))],
  [
    'long.json',
    'application/json',
    Buffer.from(JSON.stringify({ [long('k')]: 1, deep: '['.repeat(5000) })),
  ],
  ['long.csv', 'text/csv', Buffer.from(long('a,'))],
  ['deep.json', 'application/json', Buffer.from('['.repeat(5000) + ']'.repeat(5000))],
]
