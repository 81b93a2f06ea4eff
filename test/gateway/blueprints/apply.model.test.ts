/**
 * Random blueprints, applied by real gateway code to real actors and a real view.
 *
 * Properties:
 * - A preview reports what the apply then does, and writes nothing.
 * - A second apply changes nothing: no actor but that of the blueprint has an event.
 * - An apply whose gateway dies at any call, and is then repeated, ends in the same state as an
 *   apply without interruption.
 * - No resource ever has two bindings, and no key of a blueprint two resources.
 * - The export of a project, applied to an empty project, has an equal export.
 *
 * `BLUEPRINT_RUNS` is the number of random projects, and `BLUEPRINT_SEED` repeats a seed.
 */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import t from 'tap'
import { outsides, type Request, requests } from './graphs.ts'
import {
  apply,
  checkBindings,
  checkUnchanged,
  disturb,
  exported,
  interrupted,
  type Outcome,
  preview,
  shape,
  stateOf,
  stepsOfApply,
} from './play.ts'
import { runs, seed } from './settings.ts'
import { openStore, type Store } from './world.ts'

/** Each run interrupts so many applies; the steps are spread over the whole apply. */
const DEATHS = 4

/** Previews and applies a request. Both have the same outcome. */
async function previewed(store: Store, request: Request, more: object = {}): Promise<Outcome> {
  const before = store.length()
  const shown = await preview(store.gateway(), request, more)
  assert.deepEqual(store.eventsSince(before), [], 'a preview writes nothing')
  const done = await apply(store.gateway(), request, {
    ...more,
    ...(shown.plan_id !== '' && { plan_id: shown.plan_id }),
  })
  assert.deepEqual(shape(done), shape(shown))
  checkBindings(store)
  return done
}
const unmasked = (request: Request): Request =>
  JSON.parse(
    JSON.stringify(request).replaceAll('***', 'one').replaceAll('[redacted]', 'a secret of it'),
  ) as Request
/** A project with resources of an earlier apply, which was then changed by ordinary requests. */
const histories = fc.tuple(requests, outsides)

async function played([[first, outside], request, places]: [
  [Request, Parameters<typeof disturb>[1][]],
  Request,
  number[],
]): Promise<void> {
  const base = await openStore(1)
  const stores: Store[] = [base]
  const fork = async () => {
    const store = await base.fork(stores.length + 1)
    stores.push(store)
    return store
  }
  try {
    assert.equal((await apply(base.gateway(), first)).refused, undefined)
    for (const one of outside) await disturb(base, one)
    const clean = await fork()
    const { refused } = await previewed(clean, request)
    const after = await stateOf(clean)
    if (refused) return
    await checkUnchanged(clean, request)
    assert.deepEqual(await stateOf(clean), after)

    const steps = await stepsOfApply(await fork(), request)
    for (const place of places) {
      const at = 1 + (place % steps)
      const store = await fork()
      await interrupted(store, request, at)
      checkBindings(store)
      const again = await apply(store.gateway(), request)
      assert.equal(
        again.refused,
        undefined,
        `after a death at step ${at}: ${JSON.stringify(again.refused)}`,
      )
      checkBindings(store)
      assert.deepEqual(await stateOf(store), after, `after a death at step ${at} of ${steps}`)
      await checkUnchanged(store, request)
    }

    const copy = await openStore(2)
    stores.push(copy)
    const files = await exported(clean)
    // Exports contain no secrets; their author adds them.
    assert.equal((await previewed(copy, unmasked(files))).refused, undefined)
    assert.equal(JSON.stringify(await exported(copy)), JSON.stringify(files))
  } finally {
    for (const store of stores) store.close()
  }
}

t.test('applies converge, whatever the project was before', { timeout: 600_000 }, async (t) => {
  t.comment(`seed ${seed}`)
  await fc.assert(
    fc.asyncProperty(
      histories,
      requests,
      fc.array(fc.nat({ max: 10_000 }), { minLength: DEATHS, maxLength: DEATHS }),
      (...drawn) => played(drawn),
    ),
    { numRuns: runs(12), seed, includeErrorInReport: true },
  )
})
