/** The streaming form parser finds the same parts as the parser for complete bodies. */
import fc from 'fast-check'
import t from 'tap'
import { type Part, type PartHead, partsOf } from '../../../../gateway/files/multipart.ts'
import { FormParser } from '../../../../gateway/files/streaming/form-parser.ts'

/**
 * Parses a body that arrives in chunks, which are divided at `cuts`. Returns the parts of the form,
 * or the error of the parser.
 */
function streamed(
  body: Buffer,
  boundary: string,
  cuts: readonly number[],
): readonly Part[] | string {
  const parser = new FormParser(boundary)
  const parts: Part[] = []
  let open: { head: PartHead; bytes: Buffer[] } | undefined
  const ends = [...cuts.map((cut) => Math.min(cut, body.length)), body.length].sort((a, b) => a - b)
  let from = 0
  for (const end of ends) {
    // The chunk is copied, because it is overwritten below and `body` is still needed.
    const chunk = Buffer.from(body.subarray(from, end))
    const events = parser.push(chunk)
    if (typeof events === 'string') return events
    from = end
    for (const event of events)
      if (event.kind === 'part') open = { head: event.head, bytes: [] }
      else if (event.kind === 'data') open?.bytes.push(Buffer.from(event.bytes))
      else if (open) {
        parts.push({ ...open.head, bytes: Buffer.concat(open.bytes) })
        open = undefined
      }
    // The owner of the chunk may reuse its memory.
    chunk.fill('-')
  }
  return parser.end() ?? parts
}

/** Bytes in which delimiters, line breaks and dashes are frequent. */
const content = fc
  .array(
    fc.constantFrom('\r\n', '\r', '\n', '--', '-', 'b', '--b', '\r\n--', '\r\n--c', 'x', ' '),
    {
      maxLength: 12,
    },
  )
  .map((words) => words.join(''))
const part = fc.record({
  name: fc.constantFrom('file', 'name', 'metadata'),
  filename: fc.option(fc.stringMatching(/^[a-z."\\]{0,6}$/), { nil: undefined }),
  content,
  padding: fc.constantFrom('', ' ', '\t '),
})
const form = fc
  .record({
    preamble: fc.constantFrom('', '\r\n', 'ignored\r\n', '--\r\n'),
    parts: fc.array(part, { maxLength: 4 }),
    close: fc.constantFrom('--bb--', '--bb--\r\n', '--bb--\r\nepilogue\r\n--bb\r\n'),
  })
  .map(({ preamble, parts, close }) =>
    Buffer.from(
      preamble +
        parts
          .map(
            ({ name, filename, content: text, padding }) =>
              `--bb${padding}\r\nContent-Disposition: form-data; name="${name}"` +
              (filename === undefined
                ? ''
                : `; filename="${filename.replaceAll(/["\\]/g, '\\$&')}"`) +
              `\r\n\r\n${text}\r\n`,
          )
          .join('') +
        close,
    ),
  )
const cuts = fc.array(fc.nat(600), { maxLength: 12 })

const same = (body: Buffer, at: readonly number[]): void => {
  const [whole, chunks] = [partsOf(body, 'bb'), streamed(body, 'bb', at)]
  if (typeof whole === 'string' || typeof chunks === 'string') {
    if (typeof whole !== typeof chunks) throw new Error(`${String(whole)} / ${String(chunks)}`)
    return
  }
  const text = (parts: readonly Part[]) =>
    JSON.stringify(parts.map(({ bytes, ...head }) => [head, bytes.toString('latin1')]))
  if (text(whole) !== text(chunks)) throw new Error(`${text(whole)}\n${text(chunks)}`)
}

t.test('any split of any form gives the same parts', async () => {
  void fc.assert(fc.property(form, cuts, same), { numRuns: 2000 })
})
t.test('any cut or damaged form is accepted or refused alike', async () => {
  void fc.assert(
    fc.property(form, fc.nat(600), content, fc.nat(600), cuts, (body, at, noise, end, split) => {
      same(Buffer.concat([body.subarray(0, at), Buffer.from(noise), body.subarray(at, end)]), split)
    }),
    { numRuns: 2000 },
  )
})
t.test('a form that arrives byte by byte', async (t) => {
  const body = Buffer.from(
    '--bb\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n' +
      'Content-Type: Text/Plain; charset=utf-8\r\n\r\n\r\n--b\r\n--bc\r\n--bb--',
  )
  t.same(
    streamed(
      body,
      'bb',
      Array.from(body, (_, index) => index),
    ),
    [{ name: 'file', filename: 'a', type: 'text/plain', bytes: Buffer.from('\r\n--b\r\n--bc') }],
  )
})
t.test('headers and the rest of a delimiter line are bounded', async (t) => {
  const long = (text: string) => {
    const parser = new FormParser('bb')
    const first = parser.push(Buffer.from(text))
    if (typeof first === 'string') return first
    for (let i = 0; i < 5; i++) {
      const events = parser.push(Buffer.alloc(1000, 32))
      if (typeof events === 'string') return events
    }
    return undefined
  }
  t.equal(long('--bb\r\nContent-Disposition: '), 'has a part without a name')
  t.equal(long('--bb'), 'is truncated')
  t.equal(long('anything'), undefined, 'a preamble is skipped')
})
