/** A request on its way: what admission found out about it, for the verbs that answer it. */
import { withAdditions } from '../protocol/additions.ts'
import { api } from '../protocol/api.ts'
import type { Project } from '../protocol/projects/rows.ts'
import type { Row } from '../protocol/contract.ts'
import type { OrganizationDirectory } from '../protocol/access/directory.ts'
import { isRefusal, refuse, refuseFields, type Refusal } from '../protocol/errors.ts'
import { authorize, enter } from './auth/authorize.ts'
import type { Authentication, Caller } from './auth/authenticate.ts'
import type { Directory } from './directory.ts'
import type { Followers } from './streams/followers.ts'
import type { LeaseGate } from './lease-gate.ts'
import type { World } from './ports.ts'
import { admitted } from './guard.ts'
import { charged, type Limits } from './auth/rate.ts'
import type { Incoming } from './http/request.ts'
import { ownAgent, isSelfAccess } from './sessions/self-access.ts'
import { sessionReferenceOf, type SessionVisibility } from './sessions/visibility.ts'
import type { Exchange } from './http/respond.ts'
import type { ByteSemaphore } from './files/byte-semaphore.ts'
import { readUpload, type Uploaded } from './files/form.ts'
import { andThen, type MaybePromise } from './maybe-promise.ts'
import { readBody, readQuery } from './http/validate.ts'

/** What all requests of a gateway share. */
export interface Edge {
  readonly world: World
  /** Whether the gateway's own lease is fresh; waits while it is stale. */
  readonly becomesFresh: LeaseGate
  readonly directory: Directory
  readonly authentication: Authentication
  /** Absent when nothing is limited. */
  readonly limits: Limits | undefined
  readonly followers: Followers
  /** Where bytes of files are while they pass. */
  readonly room: ByteSemaphore
  readonly sight: SessionVisibility
}

export interface Call {
  /** The row's name in the table, and its path slots decoded, with the project's id under `project`. */
  readonly name: string
  readonly row: Row
  readonly slots: Readonly<Record<string, string>>
  readonly query: Readonly<Record<string, unknown>>
  readonly body: Readonly<Record<string, unknown>>
  /** The file of an upload, which is not part of the body here. */
  readonly file?: Uploaded
  readonly caller: Caller
  /** The project the path names or the run of the path belongs to; absent on rows of the organization. */
  readonly project?: Project | undefined
  readonly request_id: string
  readonly incoming: Incoming
  /** An idempotency key that came another way than as a header. */
  readonly key?: string | undefined
}

/** Id of the project, or of the organization for its own rows. */
export const scopeId = ({ world }: Edge, call: Call): string =>
  call.project?.id ?? world.organization()
/** The name under which actors and views know what this row asks for. */
export const operationOf = ({ name, row }: Call): string => row.shape.as ?? name

/** The answer of a row, with the additions that the call asks for and without the others. */
export const additionsOf = ({ row, query }: Call, answer: unknown): unknown =>
  row.shape.additions
    ? withAdditions(row.shape.additions, query['include'] as string[] | undefined, answer)
    : answer
/** The query without what only says which additions are answered: it is no part of what is asked for. */
export function queryOf({ row, query }: Call): Call['query'] {
  if (!row.shape.additions || query['include'] === undefined) return query
  const { include: _, ...rest } = query
  return rest
}

/** All rows by name. */
export const rows: Readonly<Record<string, Row>> = api

/** A row with what is looked up in it for every request. */
export interface Routed {
  readonly name: string
  readonly row: Row
  /** Names of the path slots, in order. */
  readonly slots: readonly string[]
}

/** The decoded slots of a path, or undefined when an encoding is broken. */
function decodeSlots(
  names: readonly string[],
  raw: readonly string[],
): Record<string, string> | undefined {
  const slots: Record<string, string> = {}
  try {
    for (let i = 0; i < names.length; i++) {
      const text = raw[i] ?? ''
      slots[names[i] ?? ''] = text.includes('%') ? decodeURIComponent(text) : text
    }
    return slots
  } catch {
    return undefined
  }
}

/** The project of a call: named by the path, or the one its run belongs to. A run of a project closed to the caller is not found. */
function placeOf(
  edge: Edge,
  { name, row }: Routed,
  slots: Readonly<Record<string, string>>,
  caller: Caller,
): MaybePromise<Project | undefined | Refusal> {
  if (row.shape.ofCaller) return projectOfCaller(edge, caller)
  const ofRun = row.verb !== 'command' && slots['id'] !== undefined && name.startsWith('run.')
  if (slots['project'] === undefined && !ofRun) return undefined
  return andThen(edge.directory.organization(), (known) => {
    if (isRefusal(known)) return known
    return slots['project'] === undefined
      ? locate(edge, known, slots['id'] ?? '', caller)
      : enter(caller, known, slots['project'], ofRun)
  })
}
/** The project that a credential is pinned to. Credentials of the organization belong to no person. */
const projectOfCaller = ({ directory }: Edge, caller: Caller): MaybePromise<Project | Refusal> =>
  andThen(directory.organization(), (known) => {
    if (isRefusal(known)) return known
    return caller.scope.kind === 'project'
      ? enter(caller, known, caller.scope.project_id)
      : refuse('not_found', undefined, 'Only people have credentials of their own.')
  })
async function locate(
  { world }: Edge,
  known: OrganizationDirectory,
  run_id: string,
  caller: Caller,
): Promise<Project | Refusal> {
  const answers = await world.everywhere('locate', { run_id })
  const found = answers
    .map((answer) =>
      isRefusal(answer) ? undefined : (answer as { project?: string } | undefined)?.project,
    )
    .find((id) => id !== undefined)
  if (found === undefined) return answers.find(isRefusal) ?? refuse('not_found')
  const project = enter(caller, known, found, true)
  return isRefusal(project) ? refuse('not_found') : project
}

/** Whose requests count together: those of a person, over all their tokens, or those of a key. */
const limitedBy = ({ principal, credential }: Caller): string =>
  credential.type === 'cli_token' ? principal.id : credential.id

/**
 * Admit a request to its row: who calls, how often, where, whether they may, and whether what they sent makes sense, in this
 * order. What is known about limits is added to the answer, whatever it will be.
 */
export function admit(
  edge: Edge,
  routed: Routed,
  incoming: Incoming,
  exchange: Exchange,
): MaybePromise<Call | Refusal> {
  return andThen(edge.becomesFresh(), (fresh) =>
    fresh ? admitFresh(edge, routed, incoming, exchange) : refuse('service_unavailable'),
  )
}
function admitFresh(
  edge: Edge,
  routed: Routed,
  incoming: Incoming,
  exchange: Exchange,
): MaybePromise<Call | Refusal> {
  return andThen(edge.authentication.authenticate(incoming.header('authorization')), (caller) => {
    const { limits, world } = edge
    if (isRefusal(caller))
      return caller.refused === 'unauthorized' && limits && exchange.open
        ? charged(limits, incoming.sender(), caller)
        : caller
    if (!limits) return enterRow(edge, routed, incoming, exchange, caller)
    return limits(limitedBy(caller), world.organization()).then(({ headers, refused }) => {
      exchange.add(headers)
      return refused ?? enterRow(edge, routed, incoming, exchange, caller)
    })
  })
}
function enterRow(
  edge: Edge,
  routed: Routed,
  incoming: Incoming,
  exchange: Exchange,
  caller: Caller,
): MaybePromise<Call | Refusal> {
  const slots = decodeSlots(routed.slots, incoming.slots)
  if (!slots) return refuseFields({ field: 'path', message: 'is not percent-encoded UTF-8' })
  return andThen(placeOf(edge, routed, slots, caller), (project) =>
    isRefusal(project) ? project : accept(edge, routed, incoming, exchange, caller, slots, project),
  )
}

/** The last part of admission: what the caller may do, and what was sent. */
function accept(
  edge: Edge,
  { name, row }: Routed,
  incoming: Incoming,
  exchange: Exchange,
  caller: Caller,
  slots: Record<string, string>,
  project: Project | undefined,
): MaybePromise<Call | Refusal> {
  const refused = authorize(
    edge.world.settings.brand,
    row.shape.permission,
    caller,
    slots['action_name'],
  )
  const own = refused !== undefined && isSelfAccess(row.shape.as ?? name, caller)
  if (refused && !own) return refused
  const query = readQuery(row, incoming.query)
  if (isRefusal(query)) return query
  if (incoming.broken === 'too_large')
    return refuse('payload_too_large', { limit: row.shape.limit ?? BODY_LIMIT })
  if (project && slots['project'] !== undefined) slots['project'] = project.id
  const { request_id } = exchange
  if (row.shape.upload)
    return readUpload(edge.room, row, incoming, exchange).then((read) =>
      isRefusal(read)
        ? read
        : reload(edge, { name, row, slots, query, ...read, caller, project, request_id, incoming }),
    )
  const body =
    row.verb === 'command'
      ? readBody(row, incoming.broken ? undefined : incoming.body, incoming.header('content-type'))
      : {}
  if (isRefusal(body)) return body
  const call: Call = { name, row, slots, query, body, caller, project, request_id, incoming }
  return own
    ? ownAgent(edge, call).then((is) => (is ? seen(edge, call) : refused))
    : seen(edge, call)
}

/** The call, if its caller is still admitted: a file takes as long as its client likes. */
const reload = (edge: Edge, call: Call): Promise<Call | Refusal> =>
  admitted(edge, call).then((refused) => refused ?? call)
/** The call, unless it is about a session that its caller does not see. */
function seen(edge: Edge, call: Call): MaybePromise<Call | Refusal> {
  const of = call.project && sessionReferenceOf(call.slots, call.row.shape.as ?? call.name)
  return of && call.project
    ? edge.sight.check(call.project.id, of, call.caller).then((refused) => refused ?? call)
    : call
}

/** Largest body of a row that names no limit, in bytes. */
export const BODY_LIMIT = 1_048_576
