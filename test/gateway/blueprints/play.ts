/** Operations that the model tests perform on blueprints: apply, disturb, read and compare. */
import assert from 'node:assert/strict'
import { allResources } from '../../../gateway/blueprints/present.ts'
import type { KnownResource } from '../../../protocol/blueprints/compare.ts'
import type { Binding, Change } from '../../../protocol/blueprints/schema.ts'
import type { InternalBinding } from '../../../protocol/blueprints/stored.ts'
import { resourceFacts } from '../../../protocol/blueprints/types.ts'
import { isRefusal, type Refusal } from '../../../protocol/errors.ts'
import { settleAll } from '../../support/memory.ts'
import { bodyOf, changeOf, type Outside, type Request } from './graphs.ts'
import { type Answer, type Gateway, PROJECT, type Step, type Store } from './world.ts'

export const IDENTITY = { namespace: 'ops', blueprint_key: 'desk' }
const include = ['plan', 'drift', 'orphans', 'further_types']

export interface Outcome {
  readonly refused?: Refusal
  readonly changes: readonly Change[]
  readonly bindings: readonly Binding[]
  readonly plan_id: string
}
const outcomeOf = (answer: Answer): Outcome =>
  isRefusal(answer)
    ? { refused: answer, changes: [], bindings: [], plan_id: '' }
    : (answer.body as unknown as Outcome)
export const apply = async (
  gateway: Gateway,
  request: Request & { readonly prune?: boolean; readonly plan_id?: string },
  more: object = {},
): Promise<Outcome> =>
  outcomeOf(
    await gateway.command('blueprint.apply', { ...IDENTITY, ...request, ...more }, {}, { include }),
  )
export const preview = (gateway: Gateway, request: Request, more: object = {}): Promise<Outcome> =>
  apply(gateway, request, { ...more, mode: 'preview' })

/** Returns all resources, sorted by type and name. */
export async function resourcesOf(store: Store): Promise<KnownResource[]> {
  const { edge } = store.gateway()
  const found = await allResources(edge, PROJECT)
  assert(!isRefusal(found))
  const text = ({ type, record }: KnownResource) =>
    `${type} ${String(record[resourceFacts[type].match])}`
  return found.sort((a, b) => (text(a) < text(b) ? -1 : 1))
}
export const bindingsIn = (store: Store): readonly InternalBinding[] =>
  store.view<{ items: InternalBinding[] }>('blueprint_bindings', { limit: 10_000 }).items

const isTime = (name: string): boolean => name.endsWith('_at')
/**
 * Returns the resources and bindings of a project, without ids, times, editors, generated handles
 * or `applied`.
 */
export async function stateOf(store: Store): Promise<unknown> {
  await settleAll()
  const resources = await resourcesOf(store)
  const bindings = bindingsIn(store)
  const counts = new Map<string, number>()
  let text = JSON.stringify(
    {
      resources: resources.map(({ type, record, binding }) => ({ type, record, binding })),
      bindings: bindings
        .map(({ applied: _, ...binding }) => binding)
        .sort((a, b) => (`${a.resource_type} ${a.key}` < `${b.resource_type} ${b.key}` ? -1 : 1)),
    },
    (name, value: unknown) =>
      isTime(name) || name === 'applied' || name === 'http_handle' || name === 'updated_by'
        ? undefined
        : value,
  )
  for (const { id, type, record } of resources) {
    const name = `${type} ${String(record[resourceFacts[type].match])}`
    const n = (counts.get(name) ?? 0) + 1
    counts.set(name, n)
    text = text.replaceAll(id, `<${name} #${n}>`)
  }
  return JSON.parse(text)
}
/** Asserts that no resource has two bindings and no key of a blueprint has two resources. */
export function checkBindings(store: Store): void {
  const [resources, places] = [new Set<string>(), new Set<string>()]
  for (const { resource_id, resource_type, key, namespace, blueprint_key } of bindingsIn(store)) {
    assert(!resources.has(resource_id), `${resource_id} has two bindings`)
    resources.add(resource_id)
    const place = JSON.stringify([namespace, blueprint_key, resource_type, key])
    assert(!places.has(place), `${place} has two resources`)
    places.add(place)
  }
}
/** Returns the outcome without ids, drift or field values. */
export const shape = ({ refused, changes }: Outcome) => ({
  ...(refused && { refused: refused.refused, fields: refused.details?.['fields'] }),
  changes: changes.map(({ resource_id: _, fields = [], drift: __, ...change }) => ({
    ...change,
    fields: fields.map(({ field }) => field),
  })),
})
/** Asserts that a repeated apply finds nothing to do and writes nothing but its own record. */
export async function checkUnchanged(
  store: Store,
  request: Request,
  more: object = {},
): Promise<void> {
  await settleAll()
  const before = store.length()
  const again = await apply(store.gateway(), request, more)
  await settleAll()
  assert.equal(again.refused, undefined)
  assert.deepEqual(
    again.changes.filter(({ action }) => action !== 'unchanged'),
    [],
  )
  assert.deepEqual(
    again.changes.flatMap(({ drift = [] }) => drift),
    [],
  )
  assert.deepEqual(
    store
      .eventsSince(before)
      .filter(({ kind }) => kind !== 'blueprint')
      .map(({ kind, type }) => `${kind} ${type}`),
    [],
  )
}

/** Makes a change outside of blueprints. Refusals are ignored. */
export async function disturb(store: Store, outside: Outside, step?: Step): Promise<void> {
  const gateway = store.gateway(step)
  const { effect, type, nth } = outside
  const { rows, slot } = resourceFacts[type]
  if (!rows) return
  if (effect === 'create') {
    await gateway.command(rows.create, bodyOf(outside))
  } else {
    const all = (await resourcesOf(store)).filter((one) => one.type === type)
    const one = all[nth % Math.max(1, all.length)]
    if (!one) return
    const slots = {
      [slot.name]: slot.from === 'id' ? one.id : String(one.record['name']),
    }
    if (effect === 'change') await gateway.command(rows.change, changeOf(type, one.record), slots)
    else await gateway.command(rows.remove, {}, slots)
  }
  await settleAll()
}

/**
 * Counts steps, except timers, and lets the gateway die at step `at`, or never if `at` is 0.
 * @param late lets the call at that step proceed once it resolves. By default, it never resolves.
 */
function mortal(at: number, late: Promise<void> = new Promise(() => {})) {
  let count = 0
  let bury = () => {}
  const died = new Promise<undefined>((resolve) => {
    bury = () => resolve(undefined)
  })
  const step: Step = (name) => {
    const isDead = at > 0 && count >= at
    if (name !== 'timer') count++
    if (at === 0 || count < at) return undefined
    bury()
    return isDead ? new Promise(() => {}) : late
  }
  return { step, died, count: () => count }
}
/** Milliseconds after which a dead gateway's hold has expired. */
const HOLD_MS = 31_000
/**
 * Applies a request at a gateway that dies at step `at`, and waits until its hold has expired.
 * @returns a function that lets the last call by the gateway proceed, as a delayed message.
 */
export async function interrupted(
  store: Store,
  request: Request,
  at: number,
): Promise<() => Promise<void>> {
  let release = () => {}
  const late = new Promise<void>((resolve) => {
    release = resolve
  })
  const { step, died } = mortal(at, late)
  const gateway = store.gateway(step)
  await Promise.race([died, apply(gateway, request)])
  await settleAll()
  gateway.edge.directory.close()
  await store.clock.advance(HOLD_MS)
  return async () => {
    release()
    await settleAll()
  }
}
/** Counts the steps at which an apply can be interrupted. */
export async function stepsOfApply(store: Store, request: Request): Promise<number> {
  const { step, count } = mortal(0)
  await apply(store.gateway(step), request)
  return count()
}
export async function exported(store: Store): Promise<Request> {
  const answer = await store.gateway().query('blueprint.export')
  assert(!isRefusal(answer))
  return answer.body as unknown as Request
}
