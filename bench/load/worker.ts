/**
 * A worker for load tests: one connection with many slots. It reports every job immediately: as
 * failed if the action is named `fail`, otherwise as completed.
 */
import type { Target } from '../support/baton.ts'
import { openSocket } from './socket.ts'

interface Given {
  readonly id: string
  readonly run_id: string
  readonly lease_token: string
  readonly action_name?: string
}

/**
 * Connects a worker. Resolves when it is registered.
 * @param executed receives the run id of every job that arrives.
 * @returns a function that disconnects the worker.
 */
export async function instantWorker(
  { port, key }: Target,
  slots: number,
  executed: (run: string) => void,
  name = 'bench',
): Promise<() => void> {
  let held = 0
  let claiming = false
  let registered = () => {}
  const ready = new Promise<void>((done) => {
    registered = done
  })
  const claim = () => {
    if (claiming || held >= slots) return
    claiming = true
    socket.send(`{"type":"jobs.claim","available_slots":${slots - held}}`)
  }
  const take = (jobs: readonly Given[]) => {
    claiming = false
    held += jobs.length
    for (const { id, run_id, lease_token, action_name } of jobs) {
      executed(run_id)
      const end =
        action_name === 'fail'
          ? '"status":"failed","error_type":"failed","error_message":"asked to"'
          : '"status":"completed","result":{"ok":true}'
      socket.send(`{"type":"job.report","job_id":"${id}","lease_token":"${lease_token}",${end}}`)
    }
    claim()
  }
  const socket = await openSocket(port, key, '/v1/projects/default/workers/socket', (text) => {
    // Acknowledgements are about half of all frames and have no relevant content, so they are not
    // parsed.
    if (text.startsWith('{"type":"job.report.ack"')) {
      held--
      return claim()
    }
    const frame = JSON.parse(text) as {
      type: string
      jobs?: Given[]
      error?: { code: string; message: string }
    }
    if (frame.type === 'jobs.claimed') take(frame.jobs ?? [])
    else if (frame.type === 'work.available') claim()
    else if (frame.type === 'worker.registered') {
      claim()
      registered()
    } else if (frame.type === 'error')
      throw new Error(`the worker was told ${frame.error?.code}: ${frame.error?.message}`)
  })
  socket.send(
    `{"type":"worker.register","worker_instance_id":"${name}","concurrency_limit":${slots},` +
      '"action_names":["send","fail"]}',
  )
  await ready
  return () => socket.close()
}
