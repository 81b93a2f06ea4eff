/**
 * Two applies at the same time, whose calls proceed in a random order.
 *
 * Properties:
 * - Two applies of one blueprint end in the state of one of the two serial orders.
 * - Two blueprints that want the same resources share none of them, and a repeat of each ends.
 * - An apply that ordinary requests disturb reports no success that is not in the project.
 * - No resource ever has two bindings, and no key of a blueprint two resources.
 */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import t from 'tap'
import { outsides, requests } from './graphs.ts'
import { apply, checkBindings, checkUnchanged, disturb, stateOf } from './play.ts'
import { choicesOf, race } from './scheduler.ts'
import { runs, seed } from './settings.ts'
import { openStore, type Store } from './world.ts'

const choices = fc.array(fc.nat({ max: 30 }), { minLength: 30, maxLength: 30 })
/** Runs a test with forks of one world, and closes all of them. */
async function withForks(
  prepare: (base: Store) => Promise<void>,
  play: (fork: () => Promise<Store>) => Promise<void>,
): Promise<void> {
  const base = await openStore(1)
  const stores = [base]
  try {
    await prepare(base)
    await play(async () => {
      const store = await base.fork(stores.length + 1)
      stores.push(store)
      return store
    })
  } finally {
    for (const store of stores) store.close()
  }
}
const options = { numRuns: runs(12), seed, includeErrorInReport: true }

t.test('two applies of one blueprint are serial', { timeout: 600_000 }, async (t) => {
  t.comment(`seed ${seed}`)
  await fc.assert(
    fc.asyncProperty(requests, requests, requests, choices, async (first, a, b, order) =>
      withForks(
        async (base) => {
          assert.equal((await apply(base.gateway(), first)).refused, undefined)
        },
        async (fork) => {
          const serial: unknown[] = []
          for (const [one, two] of [
            [a, b],
            [b, a],
          ] as const) {
            const store = await fork()
            const answers = [await apply(store.gateway(), one), await apply(store.gateway(), two)]
            if (answers.some(({ refused }) => refused)) return
            serial.push(await stateOf(store))
          }
          const store = await fork()
          const answers = await race(
            store,
            choicesOf(order),
            (step) => apply(store.gateway(step), a),
            (step) => apply(store.gateway(step), b),
          )
          checkBindings(store)
          assert.deepEqual(
            answers.map(({ refused }) => refused),
            [undefined, undefined],
          )
          const state = JSON.stringify(await stateOf(store))
          if (!serial.some((one) => JSON.stringify(one) === state))
            assert.deepEqual(JSON.parse(state), serial[0])
        },
      ),
    ),
    options,
  )
})

t.test('two blueprints share no resource', { timeout: 600_000 }, async (t) => {
  t.comment(`seed ${seed}`)
  const [mine, other] = [{}, { blueprint_key: 'other' }]
  await fc.assert(
    fc.asyncProperty(outsides, requests, requests, choices, async (before, a, b, order) =>
      withForks(
        async (base) => {
          for (const one of before) await disturb(base, one)
        },
        async (fork) => {
          const store = await fork()
          await race(
            store,
            choicesOf(order),
            (step) => apply(store.gateway(step), a, mine),
            (step) => apply(store.gateway(step), b, other),
          )
          checkBindings(store)
          for (const [request, more] of [
            [a, mine],
            [b, other],
          ] as const) {
            const again = await apply(store.gateway(), request, more)
            checkBindings(store)
            if (again.refused === undefined) await checkUnchanged(store, request, more)
            else assert.match(again.refused.refused, /^(blueprint_owned_elsewhere|already_exists)$/)
          }
        },
      ),
    ),
    options,
  )
})

t.test('ordinary requests during an apply', { timeout: 600_000 }, async (t) => {
  t.comment(`seed ${seed}`)
  await fc.assert(
    fc.asyncProperty(
      requests,
      outsides,
      requests,
      choices,
      async (first, outside, request, order) =>
        withForks(
          async (base) => {
            assert.equal(
              (await apply(base.gateway(), { ...first, protect_resources: false })).refused,
              undefined,
            )
          },
          async (fork) => {
            const store = await fork()
            await race<unknown>(
              store,
              choicesOf(order),
              (step) => apply(store.gateway(step), request),
              async (step) => {
                for (const one of outside) await disturb(store, one, step)
              },
            )
            checkBindings(store)
            const again = await apply(store.gateway(), request)
            checkBindings(store)
            if (again.refused === undefined) await checkUnchanged(store, request)
          },
        ),
    ),
    options,
  )
})
