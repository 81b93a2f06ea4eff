/**
 * Handles the API rows that change state: converts a call to a command for the actor that decides
 * it, and the outcome to the response. Lookups before the command are in `prepare.ts` and
 * `commands/`. Rows that read are in `query.ts`.
 */

import type { Row } from '../protocol/contract.ts'
import type { Command, Origin } from '../protocol/entry.ts'
import { isRefusal, isServiceFault, type Refusal, refuse } from '../protocol/errors.ts'
import { isId, slotOf } from '../protocol/ids.ts'
import {
  additionsOf,
  type Call,
  type CallParts,
  type Edge,
  newId,
  operationOf,
  queryOf,
  scopeId,
} from './call.ts'
import { leaveChannels } from './commands/channels.ts'
import { decideWithRevisions } from './commands/decide.ts'
import { bulkRuns } from './commands/runs/bulk.ts'
import { commandRuns } from './commands/runs/each.ts'
import { ifStillAdmitted } from './guard.ts'
import { conditionOf, tagHeader } from './http/conditional.ts'
import { type Identity, identify } from './http/idempotency.ts'
import { originOf } from './http/origin.ts'
import type { Answer } from './http/respond.ts'
import { andThen, type MaybePromise } from './maybe-promise.ts'
import type { Outcome } from './ports.ts'
import { type Prepared, prepare } from './prepare.ts'

type Writable<T> = { -readonly [K in keyof T]: T[K] }

/**
 * Performs the command of a call. For a row that changes several records, performs one command per
 * record.
 */
export function runCommand(edge: Edge, call: Call): MaybePromise<Answer | Refusal> {
  const { each, relays } = call.row.shape
  if (!each && !relays)
    return performCommand(edge, call, undefined, (...given) => replied(edge, ...given))
  const identity = identify(edge, call)
  if (isRefusal(identity)) return identity
  if (each) return runEach(edge, call, each, identity)
  return bulkRuns(edge, call, identity).then((body) =>
    isRefusal(body) ? body : { status: 200, body },
  )
}

/**
 * Performs the command of a call and passes the actor's reply to `finish`. The reply is undefined
 * when `prepare` supplied the response.
 * @param more additional input of the command. It is not part of the request's fingerprint, so it
 * may differ in a repeat under the same idempotency key.
 */
export function performCommand<T>(
  edge: Edge,
  call: Call,
  more: Readonly<Record<string, unknown>> | undefined,
  finish: (call: Call, prepared: Prepared, reply: unknown) => MaybePromise<T | Refusal>,
): MaybePromise<T | Refusal> {
  const identity = identify(edge, call)
  if (isRefusal(identity)) return identity
  const address = addressOf(edge, call, identity)
  if (isRefusal(address)) return address
  const condition = conditionOf(call)
  if (condition && isRefusal(condition)) return condition
  const origin = originOf(edge.world, call.caller, call.incoming, call.request_id)
  return andThen(prepare(edge, call, identity, origin), (prepared) => {
    if (isRefusal(prepared)) return prepared
    if (prepared.done !== undefined) return finish(call, prepared, undefined)
    const { command_id, fingerprint, seed } = identity
    const { to } = call.row.shape
    const body = prepared.omitsBody ? {} : call.body
    const input = Object.assign({}, queryOf(call), body, call.slots, prepared.input, more)
    const command: Writable<Command> = {
      project: address.project,
      kind: address.kind,
      id: prepared.id ?? address.id,
      command_id,
      name: operationOf(call),
      origin,
      input,
    }
    if (fingerprint !== undefined) command.fingerprint = fingerprint
    if (condition) command.if_match = condition
    if (prepared.born || (seed === undefined && to && 'mint' in to && prepared.id === undefined))
      command.born = true
    const decided = decide(edge.world, command, prepared)
    const completed =
      address.kind === 'project' || address.kind === 'organization'
        ? completeConfigurationChange(edge, call, origin, address.kind, decided)
        : decided
    const done = prepared.after
      ? completed.then(async (outcome) => {
          await prepared.after?.(outcome)
          return outcome
        })
      : completed
    return done.then((outcome) =>
      isRefusal(outcome) ? outcome : finish(call, prepared, outcome.reply),
    )
  })
}

/** Sends a command, or returns the outcome of the earlier command that it repeats. */
function decide(
  world: Edge['world'],
  command: Command,
  { unlessRepeated, revise }: Prepared,
): Promise<Outcome> {
  if (unlessRepeated) return world.repeated(command).then((known) => known ?? unlessRepeated)
  return revise ? decideWithRevisions(world, command, revise) : world.commandRow(command)
}

/**
 * Refusals after which the other gateways are still notified. An earlier attempt may have made the
 * change, and its gateway may have died before the notification.
 */
const MAY_HAVE_CHANGED: ReadonlySet<string> = new Set(['not_found', 'already_exists'])
/**
 * Waits for the outcome of a configuration change. Before the change is answered, makes every
 * gateway and executor drop its cached copy, even if the outcome is unknown. For a part of a call,
 * this is done at the end of the whole call. A principal that the change disabled or archived is
 * also removed from its channels.
 */
async function completeConfigurationChange(
  edge: Edge,
  call: Call,
  origin: Origin,
  kind: 'project' | 'organization',
  decided: Promise<Outcome>,
): Promise<Outcome> {
  const { world } = edge
  const { project } = call
  const outcome = await decided
  const isUnchanged =
    isRefusal(outcome) && !isServiceFault(outcome) && !MAY_HAVE_CHANGED.has(outcome.refused)
  if (isUnchanged) return outcome
  const scopes = [
    ...(kind === 'organization' ? [world.organization()] : []),
    ...(project ? [project.id] : []),
  ]
  if (!call.part) await Promise.all(scopes.map((scope) => world.forget(scope)))
  const left = await leaveChannels(edge, call, origin)
  return isRefusal(outcome) ? outcome : (left ?? outcome)
}

/**
 * Returns the response to a decided command. If the response requires another read or a wait, the
 * caller's admission is checked again afterwards.
 */
function replied(
  edge: Edge,
  call: Call,
  { answer, reply: extra, done }: Prepared,
  reply: unknown,
): MaybePromise<Answer | Refusal> {
  const answered = (found: unknown, more = extra): Answer => {
    const made = answerOf(call.row, found, more)
    return 'body' in made
      ? { ...made, ...tagHeader(call, made.body), body: additionsOf(call, made.body) }
      : made
  }
  if (done !== undefined) return answered(done, undefined)
  if (!answer) return answered(reply)
  const read = answer(reply)
  return read instanceof Promise
    ? read.then((found) =>
        isRefusal(found) ? found : ifStillAdmitted(edge, call, answered(found)),
      )
    : isRefusal(read)
      ? read
      : answered(read)
}

function answerOf(
  row: Row,
  reply: unknown,
  extra: Readonly<Record<string, unknown>> | undefined,
): Answer {
  // With `alsoStatus`, `status_code` is the status of the response. Otherwise, it is an ordinary
  // field of the response.
  const named =
    row.shape.alsoStatus && (reply as { status_code?: unknown } | null | undefined)?.status_code
  const status = typeof named === 'number' ? named : (row.shape.status ?? 200)
  if (status === 204) return { status }
  if (named === undefined && !extra && reply) return { status, body: reply }
  if (named === undefined) return { status, body: Object.assign({}, reply, extra) }
  const { status_code: _, ...body } = Object.assign({}, reply, extra) as Record<string, unknown>
  return { status, body }
}

/**
 * Returns the address of the actor that decides the command, as the row declares it. A path slot
 * that cannot be an id of the declared kind is refused with `not_found`, unless the row also
 * accepts names. The id is empty when the row's preparation determines it.
 */
function addressOf(
  edge: Edge,
  call: Call,
  { seed }: Identity,
): Pick<Command, 'project' | 'kind' | 'id'> | Refusal {
  const { world } = edge
  const { to } = call.row.shape
  const home = scopeId(edge, call)
  if (!to) throw new Error(`${call.name} names no actor`)
  if (to.kind === 'organization')
    return { project: world.organization(), kind: to.kind, id: world.organization() }
  if ('mint' in to) {
    const near = to.near?.(call.body as never)
    return {
      project: home,
      kind: to.kind,
      id: newId(edge, call, to.mint, seed, near === undefined ? undefined : slotOf(near)),
    }
  }
  if ('found' in to) return { project: home, kind: to.kind, id: '' }
  if ('derive' in to)
    return {
      project: home,
      kind: to.kind,
      id: world.id(to.prefix, `${home}/${call.slots[to.derive] ?? ''}`),
    }
  if (!('slot' in to)) return { project: home, kind: to.kind, id: home }
  const id = call.slots[to.slot] ?? ''
  return isId(id, to.prefix) || to.named
    ? { project: home, kind: to.kind, id }
    : refuse('not_found')
}

/**
 * Performs one command for each distinct valid id of the body. The response has one result for each
 * id of the body, in the same order.
 */
async function runEach(
  edge: Edge,
  call: Call,
  each: NonNullable<Row['shape']['each']>,
  { command_id, fingerprint }: Identity,
): Promise<Answer> {
  const { [each.over]: over, ...input } = call.body
  const ids = over as readonly string[]
  const distinct = [...new Set(ids)]
  const outcomes = await commandRuns(
    edge,
    {
      project: scopeId(edge, call),
      caller: call.caller,
      name: each.command,
      origin: originOf(edge.world, call.caller, call.incoming, call.request_id),
      commandId: (_, index) => `${command_id}.${index}`,
      fingerprint,
      input,
    },
    distinct,
  )
  const results = new Map(distinct.map((id, index) => [id, outcomes[index]]))
  return {
    status: call.row.shape.status ?? 200,
    body: { results: ids.map((id) => results.get(id)) },
  }
}

/**
 * The implementation of `CallParts`. Modules that this file imports receive it through `Edge`,
 * which avoids import cycles.
 */
export const callParts: CallParts = {
  perform: (edge, part, more) => performCommand(edge, part, more, (_, __, reply) => ({ reply })),
  check: async (edge, part, origin) => {
    const prepared = await prepare(edge, part, { command_id: '' }, origin)
    return isRefusal(prepared) ? prepared : undefined
  },
}
