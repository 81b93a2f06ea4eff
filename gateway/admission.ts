/**
 * Admission: the checks of a request before its row is executed, as one list of stages. The rules
 * that the stages apply are in `auth/`, `http/`, `files/` and `sessions/`. Some of the checks are
 * repeated later (`guard.ts`).
 *
 * Invariants:
 * A1. The stages run in order, and the first refusal ends admission, so a caller without access to
 *     a project learns nothing about its records. A body is validated only if the caller has the
 *     permission, or is an agent whose self-access is decided after the body is known.
 * A2. A request is admitted synchronously unless a stage returns a promise, because promises make a
 *     request more expensive.
 * A3. The rate-limit headers of an authenticated caller are added to the response even if the rate
 *     limit or a later stage refuses the request.
 */
import type { OrganizationDirectory } from '../protocol/access/directory.ts'
import { earlierActionNames } from '../protocol/environments/actions.ts'
import { isRefusal, type Refusal, refuse, refuseFields } from '../protocol/errors.ts'
import { getOwn } from '../protocol/lookup.ts'
import type { Project } from '../protocol/projects/rows.ts'
import type { Caller } from './auth/authenticate.ts'
import { authorizeRow, enterProject } from './auth/authorize.ts'
import { sessionCookieOf } from './auth/console/cookies.ts'
import { callerLimitId, countRefusal } from './auth/rate.ts'
import { type Call, type Edge, factsOf, MAX_BODY_BYTES, type Routed } from './call.ts'
import { readUpload, type Uploaded } from './files/form.ts'
import { recheckAdmission } from './guard.ts'
import type { Incoming } from './http/request.ts'
import type { Exchange } from './http/respond.ts'
import { readBody, readQuery } from './http/validate.ts'
import { andThen, type MaybePromise } from './maybe-promise.ts'
import { isSelfAccess, ownAgent } from './sessions/self-access.ts'
import { sessionReferenceOf } from './sessions/visibility.ts'

/** The state of one admission. Each stage fills in the fields that it determines. */
interface Admission {
  readonly edge: Edge
  readonly routed: Routed
  readonly incoming: Incoming
  readonly exchange: Exchange
  caller: Caller | undefined
  slots: Record<string, string>
  project: Project | undefined
  /** The refusal for a missing permission, which self-access can override. */
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

/**
 * Refuses requests while the gateway's own lease is stale, because its cached configuration cannot
 * be trusted then.
 */
const requireFreshLease: Stage = ({ edge }) =>
  andThen(edge.becomesFresh(), (fresh) => (fresh ? undefined : refuse('service_unavailable')))

/**
 * Authenticates a request by its `Authorization` header or, without this header, by the cookie of
 * its console session. A stream does not count as a use of a session, because it stays open and
 * reconnects without user action.
 */
function presentedBy({
  edge,
  routed,
  incoming,
}: Pick<Admission, 'edge' | 'routed' | 'incoming'>): MaybePromise<Caller | Refusal> {
  const { world, authentication } = edge
  const header = incoming.header('authorization')
  const hash = header === undefined ? sessionCookieOf(world, incoming) : undefined
  if (hash === undefined) return authentication.authenticate(header)
  if (isRefusal(hash)) return hash
  const { shape, verb } = routed.row
  const named = decodeSlots(routed.slots, incoming.slots)?.['project']
  const project = named ?? incoming.header('x-project')
  const people = shape.ofCaller || (named === undefined && shape.permission === 'authenticated')
  return andThen(
    authentication.console.find(hash, {
      ...(project !== undefined && { project }),
      ...(people && { people }),
    }),
    (caller) => {
      if (!isRefusal(caller) && verb !== 'stream') authentication.note(caller)
      return caller
    },
  )
}

/** Returns whether a request presents a credential of a caller. */
export const isKnown = (edge: Edge, routed: Routed, incoming: Incoming): MaybePromise<boolean> =>
  andThen(presentedBy({ edge, routed, incoming }), (caller) => !isRefusal(caller))

const authenticate: Stage = (admission) => {
  const { edge, incoming, exchange } = admission
  const { limits } = edge
  return andThen(presentedBy(admission), (caller) => {
    if (isRefusal(caller))
      return caller.refused === 'unauthorized' && limits && exchange.open
        ? countRefusal(limits, incoming.sender(), caller)
        : caller
    admission.caller = caller
    return undefined
  })
}

const limitRate: Stage = (admission) => {
  const { limits, world } = admission.edge
  return limits?.(callerLimitId(callerOf(admission)), world.organization()).then(
    ({ headers, refused }) => {
      admission.exchange.add(headers)
      return refused
    },
  )
}

/**
 * Returns the decoded slots (parameters) of a path, or undefined when a slot is not valid
 * percent-encoded UTF-8.
 */
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
 * Returns the project of a call. Depending on the row, this is the project in the path, the project
 * of the run in the path, or the caller's own project. Returns undefined if the row needs no
 * project. A run in a project that the caller may not enter is refused with `not_found`.
 */
function placeOf(
  admission: Admission,
  slots: Readonly<Record<string, string>>,
): MaybePromise<Project | undefined | Refusal> {
  const { edge } = admission
  const { row } = admission.routed
  const caller = callerOf(admission)
  if (row.shape.ofCaller) return projectOfCaller(edge, caller)
  const ofRun = factsOf({ row }).locateBy === 'run'
  if (slots['project'] === undefined && !ofRun) return undefined
  return andThen(edge.directory.organization(), (known) => {
    if (isRefusal(known)) return known
    return slots['project'] === undefined
      ? locate(edge, known, slots['id'] ?? '', admission)
      : enterProject(caller, known, slots['project'], ofRun)
  })
}
/**
 * Returns the project to which a credential is pinned. Organization keys are refused with
 * `not_found`, because they do not belong to a person.
 */
const projectOfCaller = ({ directory }: Edge, caller: Caller): MaybePromise<Project | Refusal> =>
  andThen(directory.organization(), (known) => {
    if (isRefusal(known)) return known
    return caller.scope.kind === 'project'
      ? enterProject(caller, known, caller.scope.project_id)
      : refuse('not_found', undefined, 'Only people have personal credentials.')
  })
async function locate(
  { world, authentication }: Edge,
  known: OrganizationDirectory,
  run_id: string,
  admission: Admission,
): Promise<Project | Refusal> {
  const caller = callerOf(admission)
  const answers = await world.everywhere('locate', { run_id })
  const found = answers
    .map((answer) => (isRefusal(answer) ? undefined : answer.project))
    .find((id) => id !== undefined)
  if (found === undefined) return answers.find(isRefusal) ?? refuse('not_found')
  // A console session may act as another principal in the project of the run, so its caller in that
  // project is looked up.
  const there = caller.session
    ? await authentication.console.find(caller.proof.hash, { project: found })
    : caller
  if (isRefusal(there)) return there
  admission.caller = there
  const project = enterProject(there, known, found, true)
  return isRefusal(project) ? refuse('not_found') : project
}

const findProject: Stage = (admission) => {
  const { routed, incoming } = admission
  const slots = decodeSlots(routed.slots, incoming.slots)
  if (!slots) return refuseFields({ field: 'path', message: 'is not percent-encoded UTF-8' })
  return andThen(placeOf(admission, slots), (project) => {
    if (isRefusal(project)) return project
    admission.slots = slots
    admission.project = project
    return undefined
  })
}

/**
 * Replaces an earlier name of a built-in action in the path with its current name, for which the
 * permission is then checked.
 */
const renameAction: Stage = ({ slots }) => {
  const current = getOwn<string>(earlierActionNames, slots['action_name'] ?? '')
  if (current !== undefined) slots['action_name'] = current
  return undefined
}

const requirePermission: Stage = (admission) => {
  const { edge, routed, slots } = admission
  const caller = callerOf(admission)
  const refused = authorizeRow(edge.world.settings.brand, routed.row.shape, caller, slots)
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
    return refuse('payload_too_large', { limit: row.shape.limit ?? MAX_BODY_BYTES })
  // A streamed body is read by the handler, which then repeats admission (`recheckAdmission`).
  if (row.shape.upload === 'streamed') return undefined
  // The credential became known only after the body was discarded.
  if (incoming.broken === 'unread') return refuse('service_unavailable')
  if (row.shape.upload)
    return readUpload(edge.bodyMemory, row, incoming, exchange).then((read) => {
      if (isRefusal(read)) return read
      admission.body = read.body
      admission.file = read.file
      // An upload can take a long time, and the caller may have lost access in the meantime.
      return recheckAdmission(edge, callOf(admission))
    })
  if (row.verb !== 'command' && !row.shape.body) return undefined
  const body = readBody(
    row,
    incoming.broken ? undefined : incoming.body,
    incoming.header('content-type'),
  )
  if (isRefusal(body)) return body
  admission.body = body
  return undefined
}

/**
 * Refuses a caller without the permission unless it is an agent that acts on itself. For uploads,
 * this check is made after the body has been read.
 */
const requireSelfAccess: Stage = (admission) => {
  const { edge, missing, routed } = admission
  return missing && !routed.row.shape.upload
    ? ownAgent(edge, callOf(admission)).then((is) => (is ? undefined : missing))
    : undefined
}

/**
 * Returns `not_found` for a session that the caller may not read. For uploads, this check is made
 * after the body has been read.
 */
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
  renameAction,
  requirePermission,
  validateQuery,
  validateBody,
  requireSelfAccess,
  requireVisibleSession,
]
/** Runs the stages from index `from` on, synchronously until a stage returns a promise. */
function run(admission: Admission, from: number): MaybePromise<Call | Refusal> {
  for (let i = from; i < stages.length; i++) {
    const refused = stages[i]?.(admission)
    if (refused instanceof Promise) return refused.then((found) => found ?? run(admission, i + 1))
    if (refused) return refused
  }
  return callOf(admission)
}

/** Checks a request. Returns the call for the row's handler, or the first refusal. */
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
