/**
 * Built-in actions that let an agent start and read runs, and call published workflows. The id of a
 * run is derived from the job, so a job that is performed twice starts one run.
 */
import { workflowNamed } from '../../../gateway/prepare.ts'
import type { JsonObject } from '../../../protocol/common.ts'
import { isRefusal, type Refusal, refuse } from '../../../protocol/errors.ts'
import { isId } from '../../../protocol/ids.ts'
import type { ViewQueries } from '../../../protocol/queries/views.ts'
import { act } from './act.ts'
import type { BuiltinFunction, Called, Service } from './builtin.ts'

/** Maximum time in milliseconds to wait for the run of a published workflow to end. */
const RESULT_TIMEOUT_MS = 120_000
/** Milliseconds between two polls while no event arrives. */
const POLL_EVERY_MS = 2000
const over: ReadonlySet<string> = new Set(['completed', 'failed', 'cancelled'])

async function begin(
  service: Service,
  called: Called,
  workflow: string,
  input: JsonObject,
): Promise<{ readonly run_id: string } | Refusal> {
  const { project, job, call } = called
  const found = await workflowNamed(service, project, workflow, 'workflow')
  if (isRefusal(found)) return found
  const run_id = service.world.id('run', `tool/${job.id}`)
  const { session_id, agent_turn_id, tool_call_id } = call
  const done = await act(service, called, { project, kind: 'run', id: run_id }, 'workflow.run', {
    project,
    id: found.definition.id,
    input,
    metadata: { session_id, agent_turn_id, tool_call_id },
    ...found,
    ...(call.run_id !== undefined && { parent_run_id: call.run_id }),
    ...causedBy(call),
  })
  return isRefusal(done) ? done : { run_id }
}
/** Returns the position of the run in the causal chain that led to the call. */
const causedBy = ({ causation: { depth, chain } = { depth: 0 } }: Called['call']) => ({
  ...(depth > 0 && { cause_depth: depth }),
  ...(chain && { chain }),
})
const look = ({ world }: Service, project: string, id: string) =>
  world.view(project, 'run.get', { id })
const shown = ({
  id,
  status,
  result: output,
  error_type,
  error_message,
}: ViewQueries['run.get']['reply']) => ({
  run_id: id,
  status,
  ...(output !== undefined && { output }),
  ...(error_type !== undefined && { error_type }),
  ...(error_message !== undefined && { error_message }),
})

/** Starts a run without waiting for it. */
export const startRun: BuiltinFunction = async (service, called) => {
  const { workflow, input = {} } = called.call.parameters as {
    workflow: string
    input?: JsonObject
  }
  const begun = await begin(service, called, workflow, input)
  return isRefusal(begun) ? begun : { ...begun, status: 'started' }
}
/** Reads a run of the project. */
export const getRun: BuiltinFunction = async (service, { project, call }) => {
  const id = String(call.parameters['run_id'])
  const run = isId(id, 'run')
    ? await look(service, project, id)
    : refuse('not_found', { resource: 'run' })
  return isRefusal(run) ? run : { ...shown(run) }
}

/**
 * Calls a published workflow: starts a run and waits for its output. A run that takes longer than
 * `RESULT_TIMEOUT_MS` continues, and can be read later.
 */
export const callWorkflow =
  (handle: string): BuiltinFunction =>
  async (service, called) => {
    const { world } = service
    const { project, call, signal } = called
    const begun = await begin(service, called, handle, call.parameters)
    if (isRefusal(begun)) return begun
    const { run_id } = begun
    const until = world.monotonic() + RESULT_TIMEOUT_MS
    let heard = () => {}
    const deaf = world.live(project, 'run', run_id, () => heard())
    try {
      for (;;) {
        const run = await look(service, project, run_id)
        if (isRefusal(run) && run.refused !== 'not_found') return run
        if (!isRefusal(run) && over.has(run.status))
          return run.status === 'completed'
            ? { ...shown(run) }
            : refuse(
                'conflict',
                { ...shown(run) },
                `The run ${run_id} ` +
                  (run.status === 'failed'
                    ? `failed: ${run.error_message ?? run.error_type ?? ''}`
                    : 'was cancelled'),
              )
        if (signal.aborted || world.monotonic() >= until)
          return {
            run_id,
            status: isRefusal(run) ? 'queued' : run.status,
            note: 'The run continues; check it later.',
          }
        await new Promise<void>((again) => {
          const cancel = world.later(POLL_EVERY_MS, again)
          heard = () => {
            cancel()
            again()
          }
        })
      }
    } finally {
      deaf()
    }
  }
