/** The captured output of commands, tested with random output. */
import fc from 'fast-check'
import t from 'tap'
import { Capture, endOfCharacter } from '../../../client/environment/process/output.ts'

const chunks = fc.array(fc.uint8Array({ maxLength: 400 }), { maxLength: 40 })
const captured = (limit: number, parts: readonly Uint8Array[]): string => {
  const capture = new Capture(limit)
  for (const part of parts) capture.add(part)
  return capture.text()
}

t.test('a text within the limit is complete', async () => {
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme', maxLength: 300 }), fc.nat(40), (text, cut) => {
      const printable = text.replace(/[\x00-\x1f\x7f]/g, '.')
      const bytes = Buffer.from(printable)
      const parts = [bytes.subarray(0, cut), bytes.subarray(cut)]
      return captured(Math.max(bytes.length, 128), parts) === printable
    }),
  )
})
t.test('neither the text nor its JSON exceeds its limit, whatever the bytes', async () => {
  fc.assert(
    fc.property(chunks, fc.integer({ min: 128, max: 2000 }), (parts, limit) => {
      const text = captured(limit, parts)
      const sizes = [text, JSON.stringify(text)].map((one) => Buffer.byteLength(one))
      return (sizes[0] ?? 0) <= limit && (sizes[1] ?? 0) <= 3 * limit + 2
    }),
    { numRuns: 500 },
  )
})
t.test('a long text keeps its ends, splits no character and counts what is missing', async () => {
  const unit = fc.constantFrom('a', 'ä', '€', '😀')
  fc.assert(
    fc.property(fc.array(unit, { minLength: 600, maxLength: 900 }), (units) => {
      const text = units.join('')
      const [head = '', count = '', tail = ''] = captured(500, [Buffer.from(text)]).split(
        /\n\[\.\.\. (\d+) bytes left out \.\.\.\]\n/,
      )
      const shown = Buffer.byteLength(head) + Buffer.byteLength(tail)
      return (
        head !== '' &&
        tail !== '' &&
        text.startsWith(head) &&
        text.endsWith(tail) &&
        shown + Number(count) === Buffer.byteLength(text)
      )
    }),
  )
})
t.test('the end of the last complete character', async (t) => {
  t.equal(endOfCharacter(Buffer.from('a€')), 4)
  t.equal(endOfCharacter(Buffer.from('a€').subarray(0, 3)), 1)
  t.equal(endOfCharacter(Buffer.from('😀').subarray(0, 3)), 0)
  t.equal(endOfCharacter(Buffer.alloc(0)), 0)
})
