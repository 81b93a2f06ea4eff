/**
 * Concurrent requests whose calls proceed in a random order.
 *
 * Properties:
 * - Two blueprints that want the same resources share none of them, and a repeat of each completes.
 * - An apply that is disturbed by ordinary requests completes, and a repeat converges.
 * - No resource ever has two bindings, and no key of a blueprint ever has two resources.
 */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import t from 'tap'
import { outsides, requests } from './graphs.ts'
import { apply, checkBindings, checkUnchanged, disturb } from './play.ts'
import { withForks } from './properties.ts'
import { choicesOf, race } from './scheduler.ts'
import { runs, seed } from './settings.ts'

const orders = fc.array(fc.nat({ max: 30 }), { minLength: 30, maxLength: 30 })
const options = { numRuns: runs(6), seed, includeErrorInReport: true }
const [mine, other] = [{}, { blueprint_key: 'other' }]

t.test('two blueprints share no resource', { timeout: 3_600_000 }, async (t) => {
  t.comment(`seed ${seed}`)
  await fc.assert(
    fc.asyncProperty(outsides, requests, requests, orders, (outside, a, b, order) =>
      withForks({ first: { resources: {} }, outside }, undefined, async (fork) => {
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
      }),
    ),
    options,
  )
})

t.test('ordinary requests during an apply', { timeout: 3_600_000 }, async (t) => {
  t.comment(`seed ${seed}`)
  await fc.assert(
    fc.asyncProperty(requests, outsides, requests, orders, (first, outside, request, order) =>
      withForks(
        { first: { ...first, protect_resources: false }, outside: [] },
        undefined,
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
