/** A request under way: the facts that admission establishes, for the code that answers it. */
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

/** State shared by all requests of a gateway. */
export interface Edge {
  readonly world: World
  /** Whether the gateway's own lease is fresh; waits a while when it is stale. */
  readonly becomesFresh: LeaseGate
  readonly directory: Directory
  readonly authentication: Authentication
  /** Absent when requests are not limited. */
  readonly limits: Limits | undefined
  readonly followers: Followers
  /** Bounds the bytes of files in memory while they are transferred. */
  readonly room: ByteSemaphore
  readonly sight: SessionVisibility
}

export interface Call {
  /**
   * The row's name in the API table, and its decoded path slots, with the project's id under
   * `project`.
   */
  readonly name: string
  readonly row: Row
  readonly slots: Readonly<Record<string, string>>
  readonly query: Readonly<Record<string, unknown>>
  readonly body: Readonly<Record<string, unknown>>
  /** The file of an upload, which is not part of `body`. */
  readonly file?: Uploaded
  readonly caller: Caller
  /**
   * The project that the path names or that owns the run of the path; absent on organization rows.
   */
  readonly project?: Project | undefined
  readonly request_id: string
  readonly incoming: Incoming
  /** An idempotency key that was not sent as a header. */
  readonly key?: string | undefined
}

/** Id of the project, or of the organization for its own rows. */
export const scopeId = ({ world }: Edge, call: Call): string =>
  call.project?.id ?? world.organization()
/** The operation name that actors and views use for this row. */
export const operationOf = ({ name, row }: Pick<Call, 'name' | 'row'>): string =>
  row.shape.as ?? name
/** The facts of that operation. */
export const factsOf = ({ row }: Pick<Call, 'row'>): Row['shape'] =>
  (row.shape.as === undefined ? row : (rows[row.shape.as] ?? row)).shape

/** The answer of a row, reduced to the additions that the call requests. */
export const additionsOf = ({ row, query }: Call, answer: unknown): unknown =>
  row.shape.additions
    ? withAdditions(row.shape.additions, query['include'] as string[] | undefined, answer)
    : answer
/** The query without `include`, which only selects additions of the answer. */
export function queryOf({ row, query }: Call): Call['query'] {
  if (!row.shape.additions || query['include'] === undefined) return query
  const { include: _, ...rest } = query
  return rest
}

/** All API rows by name. */
export const rows: Readonly<Record<string, Row>> = api

/** A row with the facts that every request needs, computed once. */
export interface Routed {
  readonly name: string
  readonly row: Row
  /** Names of the path slots, in order. */
  readonly slots: readonly string[]
}

/** The decoded slots of a path, or undefined when a slot is not valid percent-encoding. */
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

/**
 * The project of a call: the one that the path names, or the one that owns the run of the path. A
 * run in a project that is closed to the caller is not found.
 */
function placeOf(
  edge: Edge,
  { row }: Pick<Routed, 'row'>,
  slots: Readonly<Record<string, string>>,
  caller: Caller,
): MaybePromise<Project | undefined | Refusal> {
  if (row.shape.ofCaller) return projectOfCaller(edge, caller)
  const ofRun = factsOf({ row }).locateBy === 'run'
  if (slots['project'] === undefined && !ofRun) return undefined
  return andThen(edge.directory.organization(), (known) => {
    if (isRefusal(known)) return known
    return slots['project'] === undefined
      ? locate(edge, known, slots['id'] ?? '', caller)
      : enter(caller, known, slots['project'], ofRun)
  })
}
/**
 * The project to which a credential is pinned. Credentials of the organization belong to no person.
 */
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

/** The id under which requests are counted: the person, over all of their tokens, or the key. */
const limitedBy = ({ principal, credential }: Caller): string =>
  credential.type === 'cli_token' ? principal.id : credential.id

/**
 * Admits a request to its row: authenticates the caller, applies rate limits, finds the project,
 * authorizes the caller and validates the input, in this order. Rate-limit headers are added to the
 * answer even if it is a refusal.
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

/** The last part of admission: authorization, and validation of the query and body. */
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
  const own = refused !== undefined && isSelfAccess(factsOf({ row }), caller)
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

/**
 * The call, if its caller is still admitted after an upload, which takes as long as the client
 * likes.
 */
const reload = (edge: Edge, call: Call): Promise<Call | Refusal> =>
  admitted(edge, call).then((refused) => refused ?? call)
/** The call, unless it refers to a session that its caller may not see. */
function seen(edge: Edge, call: Call): MaybePromise<Call | Refusal> {
  const of = call.project && sessionReferenceOf(call.slots, factsOf(call))
  return of && call.project
    ? edge.sight.check(call.project.id, of, call.caller).then((refused) => refused ?? call)
    : call
}

/** Largest body in bytes of a row that sets no limit. */
export const BODY_LIMIT = 1_048_576
