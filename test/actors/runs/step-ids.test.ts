/**
 * Keys of steps. Invariant: the keys of nested steps and of cleanup steps differ from one another
 * and from every step id.
 */
import fc from 'fast-check'
import t from 'tap'
import { cleanupPrefix, prefixBelow } from '../../../actors/runs/engine/places.ts'
import type { Spec, Step } from '../../../protocol/workflows/spec.ts'

const nap = (id: string): Step => ({ id, kind: 'sleep', config: { duration: '0' } })
const branching = (id: string): Step =>
  ({ id, kind: 'for_each', config: { items: [1], steps: [nap('x')] } }) as Step

t.test('ids without dots have the same keys as in earlier releases', async (t) => {
  const steps = [nap('a'), branching('b')]
  t.equal(prefixBelow(steps, 'b'), 'b.')
  t.equal(cleanupPrefix({ steps } as Spec), 'cleanup.')
  t.equal(
    cleanupPrefix({ steps: [branching('cleanup')], cleanup: [nap('tidy')] } as unknown as Spec),
    'cleanup.',
  )
})

t.test('no key below a step is also an id or a key below another step', async () => {
  const piece = fc.constantFrom('a', 'b', '.', '~', '0', '.0.a', '.~', 'cleanup')
  const id = fc.array(piece, { minLength: 1, maxLength: 5 }).map((parts) => parts.join(''))
  void fc.assert(
    fc.property(
      fc.uniqueArray(id, { minLength: 1, maxLength: 8 }),
      fc.uniqueArray(id, { maxLength: 4 }),
      (ids, tidying) => {
        const steps = ids.map(branching)
        const keys = [
          ...ids,
          ...ids.flatMap((own) =>
            ['0', '1'].flatMap((item) =>
              ['a', 'b', '0.a', '~0.a', '.a'].map(
                (inner) => `${prefixBelow(steps, own)}${item}.${inner}`,
              ),
            ),
          ),
          ...tidying.map(
            (own) => cleanupPrefix({ steps, cleanup: tidying.map(nap) } as unknown as Spec) + own,
          ),
        ]
        return new Set(keys).size === keys.length
      },
    ),
    { numRuns: 2000 },
  )
})
