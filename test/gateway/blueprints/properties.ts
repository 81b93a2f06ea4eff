/** The properties of applied blueprints, as functions of generated values. */
import assert from 'node:assert/strict'
import type { Outside, Request } from './graphs.ts'
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
import { choicesOf, race } from './scheduler.ts'
import { openStore, type Plant, type Store } from './world.ts'

/** The history of a project: an applied request, and the later changes by other requests. */
export interface History {
  readonly first: Request
  readonly outside: readonly Outside[]
}

/** Opens a project with a history, and passes `play` a function that copies the project. */
export async function withForks(
  { first, outside }: History,
  plant: Plant | undefined,
  play: (fork: () => Promise<Store>) => Promise<void>,
): Promise<void> {
  const undo = plant?.install?.()
  const base = await openStore(1, plant)
  const stores = [base]
  try {
    assert.equal((await apply(base.gateway(), first)).refused, undefined)
    for (const one of outside) await disturb(base, one)
    await play(async () => {
      const store = await base.fork(stores.length + 1)
      stores.push(store)
      return store
    })
  } finally {
    for (const store of stores) store.close()
    undo?.()
  }
}

/**
 * Previews and applies a request. Asserts that the preview writes nothing and has the outcome of
 * the apply.
 */
async function previewed(store: Store, request: Request): Promise<Outcome> {
  const before = store.length()
  const shown = await preview(store.gateway(), request)
  assert.deepEqual(store.eventsSince(before), [], 'a preview writes nothing')
  const done = await apply(store.gateway(), {
    ...request,
    ...(shown.plan_id !== '' && { plan_id: shown.plan_id }),
  })
  assert.deepEqual(shape(done), shape(shown))
  checkBindings(store)
  return done
}
/**
 * Replaces the masked secrets of an export with values, as a user must before applying the export
 * to another project.
 */
const unmasked = (request: Request): Request =>
  JSON.parse(
    JSON.stringify(request).replaceAll('***', 'one').replaceAll('[redacted]', 'a secret of it'),
  ) as Request

/**
 * Asserts that a preview has the same outcome as the apply, that a repeat changes nothing, and that
 * a new project to which the export is applied has the same export.
 */
export const isRepeatable = (history: History, request: Request, plant?: Plant): Promise<void> =>
  withForks(history, plant, async (fork) => {
    const store = await fork()
    const { refused } = await previewed(store, request)
    const after = await stateOf(store)
    if (refused) return
    await checkUnchanged(store, request)
    assert.deepEqual(await stateOf(store), after)
    const copy = await openStore(2, plant)
    try {
      const files = await exported(store)
      assert.equal((await previewed(copy, unmasked(files))).refused, undefined)
      assert.equal(JSON.stringify(await exported(copy)), JSON.stringify(files))
    } finally {
      copy.close()
    }
  })

/**
 * Asserts that a repeat of an apply whose gateway died ends in the state of an uninterrupted apply.
 * @param deaths the deaths to test. `place` selects the step of the death. `late` determines when
 *   the last message of the dead gateway arrives during the repeat; 0 means never.
 */
export const isConvergent = (
  history: History,
  request: Request,
  deaths: readonly { readonly place: number; readonly late: number }[],
  plant?: Plant,
): Promise<void> =>
  withForks(history, plant, async (fork) => {
    const clean = await fork()
    if ((await apply(clean.gateway(), request)).refused) return
    const after = await stateOf(clean)
    const steps = await stepsOfApply(await fork(), request)
    for (const { place, late } of deaths) {
      const at = 1 + (place % steps)
      const about = `after a death at step ${at} of ${steps}, late ${late}`
      const store = await fork()
      const arrive = await interrupted(store, request, at)
      checkBindings(store)
      const [again] = await race<Outcome | undefined>(
        store,
        choicesOf([late, 0]),
        (step) => apply(store.gateway(step), request),
        async (step) => {
          if (late === 0) return undefined
          for (let wait = 0; wait < late; wait++) await step('wait')
          await arrive()
          return undefined
        },
      )
      checkBindings(store)
      assert.deepEqual(again?.refused, undefined, about)
      assert.deepEqual(await stateOf(store), after, about)
      await checkUnchanged(store, request)
    }
  })

/**
 * Asserts that two concurrent applies of one blueprint end in the state that one of the two serial
 * orders produces.
 */
export const isSerial = (
  first: Request,
  [a, b]: readonly [Request, Request],
  order: readonly number[],
  plant?: Plant,
): Promise<void> =>
  withForks({ first, outside: [] }, plant, async (fork) => {
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
  })
