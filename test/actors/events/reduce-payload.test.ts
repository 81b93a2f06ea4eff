/** A payload is reduced if, and only if, its JSON is longer than the limit. */
import * as fc from 'fast-check'
import t from 'tap'
import { reducePayload } from '../../../actors/events/reduce-payload.ts'

t.test('a payload within the limit is unchanged; a longer one is reduced', async (t) => {
  const texts = fc.string({ unit: fc.constantFrom('a', '\n', '"', '\u0001', '\ud800', 'é') })
  const values = fc.jsonValue({ depthSize: 'medium' })
  const payloads = fc.dictionary(texts, fc.oneof(texts, values), { maxKeys: 8 })
  await fc.assert(
    fc.property(payloads, fc.integer({ min: -30, max: 600 }), (payload, room) => {
      const { length } = JSON.stringify(payload)
      const largest = Math.max(20, length + room)
      const result = reducePayload(payload, largest)
      if (length <= largest) return result === payload
      return result['truncated'] === true && JSON.stringify(result).length <= largest
    }),
    { numRuns: 2000 },
  )
  t.pass()
})
