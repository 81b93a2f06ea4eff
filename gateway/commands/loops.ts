/**
 * Preparations of the loop rows: lookups, reservations of trigger handles, and sealed secrets. The
 * loop's actor decides which runs start.
 */

import type { JsonObject } from '../../protocol/common.ts'
import type { Origin } from '../../protocol/entry.ts'
import {
  isRefusal,
  isServiceFault,
  type Refusal,
  refuse,
  refuseFields,
} from '../../protocol/errors.ts'
import { isId, slotOf, stemOf } from '../../protocol/ids.ts'
import type { Saving } from '../../protocol/loops/events.ts'
import { type StartLoopRun, startKeyOf } from '../../protocol/loops/rows.ts'
import type { Loop, Trigger } from '../../protocol/loops/schema.ts'
import { REDACTED, secretFault } from '../../protocol/loops/secrets.ts'
import { isJsonObject } from '../../protocol/rules/json-object.ts'
import { below } from '../../protocol/rules/workflow-check/path.ts'
import type { Run } from '../../protocol/runs/schema.ts'
import { terminal } from '../../protocol/runs/schema.ts'
import { type Spec, type Step, workflowsNamed } from '../../protocol/workflows/spec.ts'
import { type Call, type Edge, newId } from '../call.ts'
import { type Identity, unlessRepeated } from '../http/idempotency.ts'
import type { World } from '../ports.ts'
import type { Prepare, Prepared } from '../prepare.ts'
import { refuseActions } from './actions-named.ts'
import { refuseUnknownAgents } from './agents-named.ts'
import { refuseProvider } from './environments/providers.ts'
import { refuseUnknownLoops } from './loops/loops-named.ts'
import { release, reserve, type Saver } from './loops/reservations.ts'
import { childrenOf } from './workflows/children.ts'

/** Returns the encryption context of the signing secret of a loop's trigger. */
export const secretContext = (loop_id: string, key: string): string => `loop/${loop_id}/${key}`

/** Returns the id of the loop in the path, which may contain the loop's name instead of its id. */
const loopId = ({ world }: Edge, { slots }: Call, project: string): Promise<string | Refusal> =>
  loopNamed(world, project, slots['id'] ?? '')
/**
 * Returns the id of the loop with the given id or name. An id is not looked up. An unknown name is
 * refused with `not_found`.
 */
export async function loopNamed(
  world: World,
  project: string,
  name: string,
): Promise<string | Refusal> {
  if (isId(name, 'loop')) return name
  const found = await world.view(project, 'loop_named', { name })
  if (isRefusal(found)) return found
  return (
    found.id ?? refuse('not_found', { resource: 'loop' }, 'There is no such loop in this project.')
  )
}

/**
 * Refuses steps that refer to missing workflows. A loop stores the definitions that exist when the
 * loop is saved, so every run that reached such a step would fail.
 */
export function refuseUnknownWorkflow(
  steps: readonly Step[],
  isKnown: (name: string) => boolean,
  path = '',
): Refusal | undefined {
  const missingIn = (step: Step) => workflowsNamed({ steps: [step] }).find((name) => !isKnown(name))
  const index = steps.findIndex((step) => missingIn(step) !== undefined)
  const step = steps[index]
  if (!step) return undefined
  const name = missingIn(step)
  const property =
    step.kind === 'loop' ? '.workflow_id' : step.kind === 'action' ? '.action_name' : ''
  return refuseFields({
    field: `${below(path, 'steps')}[${index}].config${property}`,
    message: `there is no ${step.kind === 'action' ? 'published ' : ''}workflow ${name}`,
    actual: name,
  })
}
async function workflowsOf(
  edge: Edge,
  project: string,
  steps: readonly Step[] | undefined,
): Promise<Pick<Saving, 'definitions'> | Refusal> {
  if (!steps) return {}
  const found = await childrenOf(edge, project, { steps } as unknown as Spec)
  if (isRefusal(found)) return found
  const { definitions = {} } = found
  return refuseUnknownWorkflow(steps, (name) => Object.hasOwn(definitions, name)) ?? { definitions }
}

/** Returns the sealed signing secrets, and the settings with a placeholder for each secret. */
function secretsOf(
  { world }: Edge,
  loop_id: string,
  settings: unknown,
): (Pick<Saving, 'secrets'> & { readonly settings?: JsonObject }) | Refusal {
  if (!isJsonObject(settings)) return {}
  const triggers = settings['http_triggers']
  if (triggers === undefined) return { secrets: {} }
  const fault = secretFault(settings)
  if (fault) return refuseFields(fault)
  if (!isJsonObject(triggers)) return {}
  const secrets: Record<string, string | true> = {}
  const shown: Record<string, unknown> = {}
  for (const [key, value] of Object.entries(triggers)) {
    shown[key] = value
    if (!isJsonObject(value) || value['signing_secret'] === undefined) continue
    const secret = String(value['signing_secret'])
    secrets[key] =
      secret === REDACTED ? true : world.lock(Buffer.from(secret), secretContext(loop_id, key))
    shown[key] = { ...value, signing_secret: REDACTED }
  }
  return { secrets, settings: { ...settings, http_triggers: shown } }
}

async function save(
  edge: Edge,
  { project, body, caller }: Call,
  id: string,
  origin: Origin,
): Promise<Prepared | Refusal> {
  if (!project) return {}
  const unknown =
    refuseActions(edge, caller, body as Partial<Spec> & Pick<Loop, 'repositories'>) ??
    refuseProvider(edge.world.settings, body as Partial<Spec>) ??
    (await refuseUnknownAgents(
      edge,
      project.id,
      body as { steps?: readonly Step[]; agent_id?: string },
    )) ??
    (await refuseUnknownLoops(edge, project.id, body as { steps?: readonly Step[] }))
  if (unknown) return unknown
  const workflows = await workflowsOf(
    edge,
    project.id,
    body['steps'] as readonly Step[] | undefined,
  )
  if (isRefusal(workflows)) return workflows
  const secrets = secretsOf(edge, id, body['settings'])
  if (isRefusal(secrets)) return secrets
  const { world } = edge
  const reservation = world.newCommandId()
  const saver: Saver = { project: project.id, loop_id: id, reservation, origin }
  const held = await reserve(edge, saver, body['triggers'] as readonly Trigger[] | undefined)
  if (isRefusal(held)) return held
  return {
    id,
    input: { organization: world.organization(), ...workflows, ...secrets, ...held },
    answer: (reply) => noted(edge, project.id, id, origin, reply),
    after: async (outcome) => {
      // If the outcome is unknown, the loop may still use the handles.
      if (isRefusal(outcome) && !isServiceFault(outcome))
        await release(edge, saver, Object.keys(held.reserved))
    },
  }
}

/**
 * Prepares a change as `save` does, but a repeat under an idempotency key gets the first answer even
 * if an agent, a workflow or a handle has disappeared since.
 */
async function saveOnce(
  edge: Edge,
  call: Call,
  id: string,
  identity: Identity,
  origin: Origin,
): Promise<Prepared | Refusal> {
  const prepared = await save(edge, call, id, origin)
  return isRefusal(prepared) ? unlessRepeated(prepared, identity, { id }) : prepared
}

/**
 * Stores in the project which actions the saved loop may call, or that the loop was deleted, before
 * the request is answered (R2 of protocol/loops/standing.ts).
 */
async function noted<T>(
  { world }: Edge,
  project: string,
  loop_id: string,
  origin: Origin,
  reply: T,
): Promise<T | Refusal> {
  const standing = await world.ask({ project, kind: 'loop', id: loop_id }, 'standing', {
    loop_id,
  })
  if (isRefusal(standing)) return standing
  const outcome = await world.command({
    project,
    kind: 'project',
    id: project,
    command_id: `loop.note:${loop_id}:${standing.version}`,
    name: 'loop.note',
    input: standing,
    origin,
  })
  return isRefusal(outcome) ? outcome : reply
}

/**
 * Returns the id of the run that another loop or a workflow started under the same start key. A run
 * is stored with its loop, so only a view can find it. Duplicates remain possible when two loops
 * are started at the same moment. They also remain possible when a workflow is started after a
 * loop, because the start of a workflow skips this query to avoid its cost.
 */
async function runElsewhere(
  { world }: Edge,
  project: string,
  run_id: string,
): Promise<string | undefined | Refusal> {
  const found = await world.view(project, 'run_of_key', { stem: stemOf(run_id) })
  return isRefusal(found) ? found : found.id
}

const startRun: Prepare = async (edge, call, { seed }) => {
  const { world } = edge
  const { project, body } = call
  if (!project) return {}
  const id = await loopId(edge, call, project.id)
  if (isRefusal(id)) return id
  const run_id = world.id('run', seed, slotOf(id))
  const read = async (at = run_id): Promise<Run | null | Refusal> =>
    await world.ask({ project: project.id, kind: 'run', id: at }, 'get', {})
  if (startKeyOf(body as StartLoopRun) !== undefined) {
    const here = await read()
    const elsewhere = here ? undefined : await runElsewhere(edge, project.id, run_id)
    if (isRefusal(elsewhere)) return elsewhere
    const known = elsewhere === undefined ? here : await read(elsewhere)
    if (known && isRefusal(known)) return known
    // The key is refused if its run has ended, or if it is the run of a workflow, because the
    // response to the start of a loop cannot contain such a run.
    if (known && (terminal.has(known.status) || !('loop_id' in known)))
      return refuse('idempotency_key_conflict', { run_id: known.id, status: known.status })
    if (known && elsewhere !== undefined) return { done: known }
  }
  return {
    id,
    input: { run_id },
    answer: async () => (await read()) ?? refuse('service_unavailable'),
  }
}

export const loopPreparations: Readonly<Record<string, Prepare>> = {
  'loop.create': (edge, call, identity, origin) =>
    saveOnce(edge, call, newId(edge, call, 'loop', identity.seed), identity, origin),
  'loop.update': async (edge, call, identity, origin) => {
    const id = call.project ? await loopId(edge, call, call.project.id) : ''
    return isRefusal(id) ? id : saveOnce(edge, call, id, identity, origin)
  },
  'loop.delete': async (edge, call, _, origin) => {
    const { project } = call
    if (!project) return {}
    const id = await loopId(edge, call, project.id)
    return isRefusal(id)
      ? id
      : {
          id,
          input: { organization: edge.world.organization() },
          answer: (reply) => noted(edge, project.id, id, origin, reply),
        }
  },
  'loop.start': startRun,
  'loop.fire': startRun,
}
