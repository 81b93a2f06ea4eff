/** Runs commands in environments. */
import type { Service } from '../../support/service.ts'
import { listOf } from './given.ts'
import { start } from './sockets.ts'

/**
 * Runs a command in an environment, as a step of a run. Returns the output, or the whole step if it
 * has no result.
 */
export async function bash(s: Service, environment_id: string, command: string): Promise<string> {
  const run = await start(s, 'environment.bash', { environment_id, parameters: { command } })
  await s.follow('run.events', { id: run['id'] }, () => false)
  const [step] = listOf(await s.ok('run.steps', { id: run['id'] }))
  const { result } = step as { readonly result?: { readonly stdout: string } }
  return result?.stdout ?? JSON.stringify(step)
}
