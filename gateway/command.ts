/** Rows that change something: the request as a command to the actor that decides it, and its outcome as an answer. */
import type { Command, Origin } from '../protocol/entry.ts'
import type { Row } from '../protocol/contract.ts'
import { errorBody, errors, isRefusal, refuse, type Refusal } from '../protocol/errors.ts'
import { isId } from '../protocol/ids.ts'
import { homeOf, meaning, rows, type Call, type Edge } from './call.ts'
import { leaveChannels } from './channels.ts'
import { identify, type Identity } from './idempotency.ts'
import type { Outcome } from './ports.ts'
import { prepare } from './prepare.ts'
import type { Answer } from './respond.ts'

/** Commands of one bulk request that are under way at a time. */
const AT_ONCE = 16

type Writable<T> = { -readonly [K in keyof T]: T[K] }

/** Perform the command of a call. */
export async function runCommand(edge: Edge, call: Call): Promise<Answer | Refusal> {
  const identity = identify(edge, call)
  if (isRefusal(identity)) return identity
  if (call.row.shape.each) return runEach(edge, call, call.row.shape.each, identity)
  const address = addressOf(edge, call, identity)
  if (isRefusal(address)) return address
  const origin = originOf(edge, call)
  const prepared = await prepare(edge, call, identity, origin)
  if (isRefusal(prepared)) return prepared
  const { project, kind } = address
  const id = prepared.id ?? address.id
  const { command_id, fingerprint, seed } = identity
  const { to } = call.row.shape
  const input = Object.assign({}, call.query, call.body, call.slots, prepared.input)
  const command: Writable<Command> = { project, kind, id, command_id, name: meaning(call), origin, input }
  if (fingerprint !== undefined) command.fingerprint = fingerprint
  if (seed === undefined && to && 'mint' in to && prepared.id === undefined) command.born = true
  const outcome = await edge.world.command(command)
  if (kind === 'project' || kind === 'organization') await publish(edge, call, kind, outcome)
  const left = call.name.startsWith('principal.') ? await leaveChannels(edge, call, origin) : undefined
  if (isRefusal(outcome)) return outcome
  if (left) return left
  const reply = prepared.answer ? await prepared.answer(outcome.reply) : outcome.reply
  return isRefusal(reply) ? reply : answerOf(call.row, reply, prepared.reply)
}

/** A change of configuration counts everywhere before it is answered; also when nobody knows whether it was made. */
async function publish({ world }: Edge, { project }: Call, kind: 'project' | 'organization', outcome: Outcome): Promise<void> {
  if (isRefusal(outcome) && errors[outcome.refused].status < 500) return
  const homes = [...(kind === 'organization' ? [world.organization()] : []), ...(project ? [project.id] : [])]
  await Promise.all(homes.map((home) => world.forget(home)))
}

function answerOf(row: Row, reply: unknown, extra: Readonly<Record<string, unknown>> | undefined): Answer {
  const body = Object.assign({}, reply, extra) as Record<string, unknown>
  const named = (reply as { status_code?: unknown } | null | undefined)?.status_code
  const status = typeof named === 'number' ? named : (row.shape.status ?? 200)
  if (named !== undefined) delete body['status_code']
  return status === 204 ? { status } : { status, body }
}

const originOf = ({ world }: Edge, { caller, request_id, incoming }: Call): Origin => {
  const agent = incoming.header('user-agent')?.slice(0, 256)
  return { at: world.now(), principal: caller.principal, credential: caller.credential, request_id, ...(incoming.ip !== '' && { ip: incoming.ip }), ...(agent !== undefined && { user_agent: agent }) }
}

/** The actor that decides, from the row. A slot that cannot be an id names nothing that exists. */
function addressOf(edge: Edge, call: Call, { seed }: Identity): Pick<Command, 'project' | 'kind' | 'id'> | Refusal {
  const { world } = edge
  const { to } = call.row.shape
  const home = homeOf(edge, call)
  if (!to) throw new Error(`${call.name} names no actor`)
  if (to.kind === 'organization') return { project: world.organization(), kind: to.kind, id: world.organization() }
  if ('mint' in to) return { project: home, kind: to.kind, id: world.id(to.mint, seed) }
  if ('derive' in to) return { project: home, kind: to.kind, id: world.id(to.prefix, `${home}/${call.slots[to.derive] ?? ''}`) }
  if (!('slot' in to)) return { project: home, kind: to.kind, id: home }
  const id = call.slots[to.slot] ?? ''
  return isId(id, to.prefix) ? { project: home, kind: to.kind, id } : refuse('not_found')
}

/** Perform one command per id of the body, several at a time, and tell every outcome in the order of the ids. */
async function runEach(edge: Edge, call: Call, each: NonNullable<Row['shape']['each']>, identity: Identity): Promise<Answer> {
  const { world } = edge
  const { [each.over]: over, ...shared } = call.body
  const ids = over as readonly string[]
  const origin = originOf(edge, call)
  const to = rows[each.command]?.shape.to
  if (!to) throw new Error(`${each.command} names no actor`)
  const { fingerprint } = identity
  const target = { project: homeOf(edge, call), kind: to.kind, name: each.command, origin, ...(fingerprint !== undefined && { fingerprint }) }
  const results: unknown[] = []
  const one = async (run_id: string, index: number): Promise<unknown> => {
    const outcome = isId(run_id, each.prefix)
      ? await world.command({ ...target, id: run_id, command_id: `${identity.command_id}.${index}`, input: { ...shared, project: target.project, id: run_id } })
      : refuse('not_found')
    if (isRefusal(outcome)) {
      const { code, message } = errorBody(outcome).error
      return { run_id, ok: false, error: { code, message } }
    }
    const status = (outcome.reply as { status?: unknown } | undefined)?.status
    return { run_id, ok: true, ...(typeof status === 'string' && { status }) }
  }
  const queue = ids.entries()
  await Promise.all(Array.from({ length: Math.min(AT_ONCE, ids.length) }, async () => {
    for (const [index, id] of queue) results[index] = await one(id, index)
  }))
  return { status: call.row.shape.status ?? 200, body: { results } }
}
