/**
 * Admission: everything that is checked before a row is performed, as one list of stages.
 *
 * Invariants:
 * A1. The stages run in order, and the first refusal ends admission. So a caller without access to
 *     a project learns nothing about its records, and no body is validated for a caller without the
 *     permission.
 * A2. A request whose stages all know their answer at once is admitted synchronously: a promise
 *     costs more than most of the gateway's work for a request.
 * A3. Rate-limit headers are added to the answer even if a later stage refuses.
 */
import type { OrganizationDirectory } from '../protocol/access/directory.ts'
import { isRefusal, type Refusal, refuse, refuseFields } from '../protocol/errors.ts'
import type { Project } from '../protocol/projects/rows.ts'
import type { Caller } from './auth/authenticate.ts'
import { authorize, enter } from './auth/authorize.ts'
import { charged } from './auth/rate.ts'
import { BODY_LIMIT, type Call, type Edge, factsOf, type Routed } from './call.ts'
import { readUpload, type Uploaded } from './files/form.ts'
import { admitted } from './guard.ts'
import type { Incoming } from './http/request.ts'
import type { Exchange } from './http/respond.ts'
import { readBody, readQuery } from './http/validate.ts'
import { andThen, type MaybePromise } from './maybe-promise.ts'
import { isSelfAccess, ownAgent } from './sessions/self-access.ts'
import { sessionReferenceOf } from './sessions/visibility.ts'

/** A request on its way through the stages, which fill in what they establish. */
interface Admission {
  readonly edge: Edge
  readonly routed: Routed
  readonly incoming: Incoming
  readonly exchange: Exchange
  caller: Caller | undefined
  slots: Record<string, string>
  project: Project | undefined
  /** The missing permission, if only self-access can make up for it. */
  missing: Refusal | undefined
  query: Call['query']
  body: Call['body']
  file: Uploaded | undefined
}
type Stage = (admission: Admission) => MaybePromise<Refusal | undefined>

const callerOf = ({ caller }: Admission): Caller => {
  if (!caller) throw new Error('the stage comes before authentication')
  return caller
}
const callOf = (admission: Admission): Call => {
  const { routed, slots, query, body, file, project, exchange, incoming } = admission
  const { name, row } = routed
  const { request_id } = exchange
  const caller = callerOf(admission)
  return {
    name,
    row,
    slots,
    query,
    body,
    ...(file && { file }),
    caller,
    project,
    request_id,
    incoming,
  }
}

/** While the gateway's own lease is stale, its cached configuration cannot be trusted. */
const requireFreshLease: Stage = ({ edge }) =>
  andThen(edge.becomesFresh(), (fresh) => (fresh ? undefined : refuse('service_unavailable')))

const authenticate: Stage = (admission) => {
  const { edge, incoming, exchange } = admission
  const { authentication, limits } = edge
  return andThen(authentication.authenticate(incoming.header('authorization')), (caller) => {
    if (isRefusal(caller))
      return caller.refused === 'unauthorized' && limits && exchange.open
        ? charged(limits, incoming.sender(), caller)
        : caller
    admission.caller = caller
    return undefined
  })
}

/** The id under which requests are counted: the person, over all of their tokens, or the key. */
const limitedBy = ({ principal, credential }: Caller): string =>
  credential.type === 'cli_token' ? principal.id : credential.id
const limitRate: Stage = (admission) => {
  const { limits, world } = admission.edge
  return limits?.(limitedBy(callerOf(admission)), world.organization()).then(
    ({ headers, refused }) => {
      admission.exchange.add(headers)
      return refused
    },
  )
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
      : refuse('not_found', undefined, 'Only people have personal credentials.')
  })
async function locate(
  { world }: Edge,
  known: OrganizationDirectory,
  run_id: string,
  caller: Caller,
): Promise<Project | Refusal> {
  const answers = await world.everywhere('locate', { run_id })
  const found = answers
    .map((answer) => (isRefusal(answer) ? undefined : answer.project))
    .find((id) => id !== undefined)
  if (found === undefined) return answers.find(isRefusal) ?? refuse('not_found')
  const project = enter(caller, known, found, true)
  return isRefusal(project) ? refuse('not_found') : project
}

const findProject: Stage = (admission) => {
  const { edge, routed, incoming } = admission
  const slots = decodeSlots(routed.slots, incoming.slots)
  if (!slots) return refuseFields({ field: 'path', message: 'is not percent-encoded UTF-8' })
  return andThen(placeOf(edge, routed, slots, callerOf(admission)), (project) => {
    if (isRefusal(project)) return project
    admission.slots = slots
    admission.project = project
    return undefined
  })
}

const requirePermission: Stage = (admission) => {
  const { edge, routed, slots } = admission
  const caller = callerOf(admission)
  const refused = authorize(
    edge.world.settings.brand,
    routed.row.shape.permission,
    caller,
    slots['action_name'],
  )
  admission.missing = refused
  return isSelfAccess(factsOf(routed), caller) ? undefined : refused
}

const validateQuery: Stage = (admission) => {
  const { routed, incoming, project, slots } = admission
  const query = readQuery(routed.row, incoming.query)
  if (isRefusal(query)) return query
  admission.query = query
  if (project && slots['project'] !== undefined) slots['project'] = project.id
  return undefined
}

const validateBody: Stage = (admission) => {
  const { edge, routed, incoming, exchange } = admission
  const { row } = routed
  if (incoming.broken === 'too_large')
    return refuse('payload_too_large', { limit: row.shape.limit ?? BODY_LIMIT })
  if (row.shape.upload)
    return readUpload(edge.bodyMemory, row, incoming, exchange).then((read) => {
      if (isRefusal(read)) return read
      admission.body = read.body
      admission.file = read.file
      // An upload takes as long as the client likes, so the caller may have lost access meanwhile.
      return admitted(edge, callOf(admission))
    })
  if (row.verb !== 'command') return undefined
  const body = readBody(
    row,
    incoming.broken ? undefined : incoming.body,
    incoming.header('content-type'),
  )
  if (isRefusal(body)) return body
  admission.body = body
  return undefined
}

/** Without the permission, an agent may only act on itself. */
const requireSelfAccess: Stage = (admission) => {
  const { edge, missing, routed } = admission
  return missing && !routed.row.shape.upload
    ? ownAgent(edge, callOf(admission)).then((is) => (is ? undefined : missing))
    : undefined
}

/** A session that its caller may not see does not exist for the caller. */
const requireVisibleSession: Stage = (admission) => {
  const { edge, project, slots, routed } = admission
  const of = project && !routed.row.shape.upload && sessionReferenceOf(slots, factsOf(routed))
  return of ? edge.sessionVisibility.check(project.id, of, callerOf(admission)) : undefined
}

const stages: readonly Stage[] = [
  requireFreshLease,
  authenticate,
  limitRate,
  findProject,
  requirePermission,
  validateQuery,
  validateBody,
  requireSelfAccess,
  requireVisibleSession,
]
/** Runs the stages from one on, synchronously as long as they answer at once. */
function run(admission: Admission, from: number): MaybePromise<Call | Refusal> {
  for (let i = from; i < stages.length; i++) {
    const refused = stages[i]?.(admission)
    if (refused instanceof Promise) return refused.then((found) => found ?? run(admission, i + 1))
    if (refused) return refused
  }
  return callOf(admission)
}

/** Admits a request to its row, or returns the first refusal. */
export const admit = (
  edge: Edge,
  routed: Routed,
  incoming: Incoming,
  exchange: Exchange,
): MaybePromise<Call | Refusal> =>
  run(
    {
      edge,
      routed,
      incoming,
      exchange,
      caller: undefined,
      slots: {},
      project: undefined,
      missing: undefined,
      query: {},
      body: {},
      file: undefined,
    },
    0,
  )
