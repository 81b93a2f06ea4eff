/**
 * Preparations of the action rows. They generate signing secrets, which are shown once, and check
 * and seal endpoint URLs. Preparations of direct calls validate the input and wait for the result.
 */
import type { CatalogEntry, Invoke } from '../../protocol/actions/rows.ts'
import type { JsonObject } from '../../protocol/common.ts'
import { isRefusal, type Refusal, refuse, refuseFields } from '../../protocol/errors.ts'
import { getOwn } from '../../protocol/lookup.ts'
import { publishedHandle } from '../../protocol/naming.ts'
import { checkValue, unusableMessage } from '../../protocol/rules/json-schema/validate.ts'
import { needsEnvironment } from '../../protocol/workflows/environment.ts'
import { authorize } from '../auth/authorize.ts'
import { type Call, type Edge, scopeId } from '../call.ts'
import type { Sink } from '../http/respond.ts'
import type { Prepare, Prepared } from '../prepare.ts'
import { callersOf, findEntry } from '../queries/action-catalog.ts'
import { timelineSource } from '../streams/timeline.ts'
import { refuseUrl, withSealedUrl } from './seal-url.ts'
import { childrenOf } from './workflows/children.ts'

/** Length of a signing secret in bytes. */
const SECRET_BYTES = 32
/** Default wait for the result of a direct call, in seconds. */
const DEFAULT_WAIT_S = 30

/**
 * Generates a signing secret. The actor stores it sealed, and the caller receives it in clear text.
 * The clear text is decrypted from the actor's reply, which the actor remembers, so a repeat under
 * an idempotency key returns the first secret. Worker actions have no secret.
 */
export function withSecret(edge: Edge, call: Call): Prepared {
  const { world } = edge
  if (call.body['endpoint_kind'] === 'worker') return { input: { sealed: '' } }
  const home = scopeId(edge, call)
  const made = world.random(SECRET_BYTES)
  return {
    input: { sealed: world.lock(made, home), returned: true },
    answer: async (reply) => {
      const { sealed, ...record } = reply as { readonly sealed?: string }
      // A shard owner of an older release does not return `sealed`.
      const bytes = sealed === undefined ? made : world.unlock(sealed, home)
      if (!bytes) throw new Error('a new secret cannot be unlocked')
      return { ...record, signing_secret: Buffer.from(bytes).toString('base64') }
    },
  }
}
/**
 * Returns the refusal for an input that does not fit an action's schema, or undefined when it fits.
 * A stored schema can contain a pattern that cannot be applied. This is not the caller's error, so
 * the refusal is a `conflict` with the action's name and the location of the pattern.
 */
function inputRefusal(
  { name, input_schema }: CatalogEntry,
  input: JsonObject,
): Refusal | undefined {
  if (!input_schema) return undefined
  const checked = checkValue(input_schema, input, 'input')
  if ('faults' in checked)
    return checked.faults.length > 0 ? refuseFields(...checked.faults) : undefined
  const { place, message } = checked.unusable
  return refuse(
    'conflict',
    { action: name, fields: [{ field: `input_schema.${place}`, message }] },
    `The input ${unusableMessage(checked.unusable, `the input_schema of ${name}`)}`,
  )
}

/**
 * Refuses a call that lacks a required environment, or that specifies an environment for a built-in
 * action.
 */
function misplaced(
  { name, endpoint_kind }: CatalogEntry,
  environment_id: string | undefined,
): Refusal | undefined {
  if (environment_id === undefined)
    return needsEnvironment({ action_name: name })
      ? refuseFields({ field: 'environment_id', message: 'is required for this action' })
      : undefined
  return endpoint_kind === 'builtin'
    ? refuseFields({
        field: 'environment_id',
        message: 'is not allowed: this action is not performed in an environment',
        actual: environment_id,
      })
    : undefined
}

/**
 * Prepares a direct call: checks that the input is valid and that the action is ready. The response
 * is the result, or the status of the call if the wait times out. A dry run makes no call.
 */
async function invoke(edge: Edge, call: Call): Promise<Prepared | Refusal> {
  const { project } = call
  if (!project) return {}
  const {
    input = {},
    timeout_seconds = DEFAULT_WAIT_S,
    dry_run,
    environment_id,
  } = call.body as Invoke
  const entry = await findEntry(edge.world, project.id, call.slots['action_name'] ?? '')
  if (isRefusal(entry)) return entry
  const workflow = publishedHandle(entry.name)
  if (entry.endpoint_kind === 'builtin' && workflow === undefined)
    return refuse(
      'conflict',
      { endpoint_kind: entry.endpoint_kind },
      `Only ${callersOf(entry.name, edge.world.settings.brand.toLowerCase())} can call this action; ` +
        'clients use its endpoints.',
    )
  const misfit = inputRefusal(entry, input) ?? misplaced(entry, environment_id)
  if (misfit) return misfit
  if (dry_run && entry.annotations['read_only'] !== true)
    return refuseFields({
      field: 'dry_run',
      message: 'is allowed only for actions that are annotated read_only',
    })
  if (dry_run) return { done: { status_code: 200, status: 'completed' } }
  if (entry.readiness !== 'ready')
    return refuse(
      'conflict',
      { readiness: entry.readiness, readiness_reason: entry.readiness_reason },
      `The action is not ready: ${entry.readiness_reason}.`,
    )
  const definitions =
    workflow === undefined
      ? undefined
      : await childrenOf(edge, project.id, {
          steps: [{ kind: 'action', config: { action_name: entry.name } }],
        })
  if (definitions && isRefusal(definitions)) return definitions
  return {
    ...(definitions && { input: { ...definitions } }),
    answer: (reply) =>
      resultOf(edge, project.id, (reply as { run_id: string }).run_id, timeout_seconds * 1000),
  }
}

/**
 * Returns the result of a direct call when its run has ended, or its status when the wait has timed
 * out.
 * @param ms maximum wait in milliseconds.
 */
async function resultOf(edge: Edge, project: string, run: string, ms: number): Promise<unknown> {
  await waitForRunEnd(edge, project, run, ms)
  const result = await edge.world.ask({ project, kind: 'run', id: run }, 'invoked', {})
  if (!result) return refuse('not_found')
  return isRefusal(result)
    ? result
    : { ...result, status_code: result.status === 'active' ? 202 : 200 }
}

/** Follows the timeline of a run until the run ends, for at most `ms` milliseconds. */
export async function waitForRunEnd(
  { world, followers }: Edge,
  project: string,
  run: string,
  ms: number,
): Promise<void> {
  const hold = followers.acquire(timelineSource(world, project, run))
  let over = () => {}
  const done = new Promise<void>((resolve) => {
    over = resolve
  })
  const cancel = world.later(ms, over)
  const sink = waiting(over)
  try {
    const opening = await hold.member.follower.open(0)
    if (isRefusal(opening)) return
    hold.member.follower.join(sink, 0, opening)
    await done
  } finally {
    cancel()
    sink.end()
    hold.release()
  }
}
/** A sink that discards all data and reports only the end of the stream. */
function waiting(over: () => void): Sink {
  const closers: (() => void)[] = []
  let closed = false
  return {
    write: () => {},
    full: false,
    onDrain: () => {},
    onClose: (run) => void closers.push(run),
    get closed() {
      return closed
    },
    end: () => {
      if (closed) return
      closed = true
      for (const close of closers) close()
      over()
    },
  }
}

const addressOf = ({ body }: Call): string | undefined =>
  typeof body['endpoint_url'] === 'string' ? body['endpoint_url'] : undefined
/** Refuses a caller without `project.admin`. */
const refusedUnlessAdmin = (
  { world }: Pick<Edge, 'world'>,
  { caller }: Call,
): Refusal | undefined => authorize(world.settings.brand, 'project.admin', caller)
/**
 * Refuses a change to an action's endpoint by a caller without `project.admin`, because the
 * endpoint receives the signed requests of all callers.
 */
const movedEndpoint = (edge: Edge, call: Call): Refusal | undefined =>
  addressOf(call) === undefined ? undefined : refusedUnlessAdmin(edge, call)
/**
 * Refuses an action with the name of an organization's action, if the caller lacks `project.admin`.
 * The project's action receives the calls of the organization's action from then on.
 */
async function shadowed(edge: Edge, call: Call): Promise<Refusal | undefined> {
  const refused = refusedUnlessAdmin(edge, call)
  if (!refused) return undefined
  const organization = await edge.directory.organization()
  if (isRefusal(organization)) return organization
  return getOwn(organization.actions ?? {}, String(call.body['name'])) ? refused : undefined
}
/**
 * Refuses an endpoint that is not an allowed destination, if its host is an IP address, `localhost`
 * or a name below `localhost`. Other host names are checked whenever the action is called.
 */
async function refusedEndpoint({ world }: Edge, call: Call): Promise<Refusal | undefined> {
  const url = addressOf(call)
  if (url === undefined || !URL.canParse(url)) return undefined
  const address = new URL(url)
  // RFC 6761, section 6.3, reserves `localhost` and names below it for the loopback address.
  if (/^(.+\.)?localhost$/.test(address.hostname)) address.hostname = '127.0.0.1'
  if (!/^[\d.]+$|^\[/.test(address.hostname)) return undefined
  return refuseUrl(world, 'endpoint_url', url, address.href)
}
/** Preparations of the action rows, by row name. */
export const actionPreparations: Readonly<Record<string, Prepare>> = {
  'action.create': async (edge, call) =>
    (await shadowed(edge, call)) ??
    (await refusedEndpoint(edge, call)) ??
    withSealedUrl(edge, call, 'endpoint_url', withSecret(edge, call)),
  'action.update': async (edge, call) =>
    movedEndpoint(edge, call) ??
    (await refusedEndpoint(edge, call)) ??
    withSealedUrl(edge, call, 'endpoint_url'),
  'action.delete': (edge, call) => {
    const refused_http = refusedUnlessAdmin(edge, call)
    return refused_http ? { input: { refused_http } } : {}
  },
  'action.rotate_secret': withSecret,
  'action.invoke': invoke,
  'organization_action.create': async (edge, call) =>
    (await refusedEndpoint(edge, call)) ??
    withSealedUrl(edge, call, 'endpoint_url', withSecret(edge, call)),
  'organization_action.update': async (edge, call) =>
    (await refusedEndpoint(edge, call)) ?? withSealedUrl(edge, call, 'endpoint_url'),
  'organization_action.rotate_secret': withSecret,
}
