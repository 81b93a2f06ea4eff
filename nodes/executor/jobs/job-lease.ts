/**
 * The lease of a job that the executor holds: its heartbeats, and the report of its outcome. Both
 * are commands to the queue that granted the lease.
 */
import type { World } from '../../../gateway/ports.ts'
import { backoffMs, sleep } from '../../../gateway/timing.ts'
import { errors, isRefusal } from '../../../protocol/errors.ts'
import { queueOfLease } from '../../../protocol/jobs/lease-token.ts'
import type { CommandInput, CommandName } from '../../../protocol/queries/commands.ts'
import type { AddressOf } from '../../../protocol/queries/owners.ts'
import { shardOf } from '../../../protocol/subjects.ts'
import type { ClaimedJob } from '../../../protocol/workers/socket.ts'
import type { Outcome } from '../handler.ts'
import { systemOrigin } from '../system-origin.ts'

/** Initial and maximum delay before a report is sent again, in milliseconds. */
const RETRY_MS = { first: 500, last: 10_000 } as const

/** What the leases of an executor share. */
export interface LeaseHolder {
  readonly world: Pick<
    World,
    'now' | 'monotonic' | 'later' | 'command' | 'newCommandId' | 'settings'
  >
  /** Name of the executor's mailbox. */
  readonly mailbox: string
}
export interface JobLease {
  /** Reports the outcome. Repeats this until the queue decides, or one lease duration has passed. */
  report(outcome: Outcome): Promise<void>
  /**
   * Sends heartbeats until the returned function is called.
   * @param onEnd called when the queue answers that the lease is lost or the job was cancelled. No
   * heartbeat follows.
   */
  renew(onEnd: (why: 'lost' | 'cancelled') => void): () => void
}

/** Returns the lease of a job; undefined if the id of the job or the lease token is malformed. */
export function jobLease(
  holder: LeaseHolder,
  project: string,
  { id: job_id, lease_token }: Pick<ClaimedJob, 'id' | 'lease_token'>,
): JobLease | undefined {
  const { world, mailbox } = holder
  const { cadence, lease } = world.settings.timing
  const queue = queueOfLease(lease_token)
  const shard = shardOf('job', job_id, world.settings.shards)
  if (queue === undefined || shard === undefined) return undefined
  const to: AddressOf<'queue'> = { project, kind: 'queue', id: `${shard}.${queue}` }
  const command = <N extends CommandName<'queue'>>(
    name: N,
    input: CommandInput<'queue', N>,
    command_id: string,
  ) => world.command({ ...to, command_id, name, input, origin: systemOrigin(world, mailbox) })
  return {
    async report(outcome) {
      const command_id = world.newCommandId()
      const end = world.monotonic() + lease * 1000
      for (let failures = 0; ; failures++) {
        const decided = await command(
          'queue.report',
          { job_id, lease_token, ...outcome },
          command_id,
        )
        if (
          !isRefusal(decided) ||
          !('retryable' in errors[decided.refused]) ||
          world.monotonic() >= end
        )
          return
        await sleep(world, backoffMs(failures, RETRY_MS))
      }
    },
    renew(onEnd) {
      let stopped = false
      let cancel = () => {}
      const beat = (): void => {
        const input = { job_id, lease_token, gateway: mailbox }
        void command('queue.heartbeat', input, world.newCommandId()).then((decided) => {
          if (stopped) return
          const reply = isRefusal(decided) ? undefined : decided.reply
          if (reply && !reply.alive) onEnd('lost')
          else if (reply?.cancel) onEnd('cancelled')
          else beatLater()
        })
      }
      const beatLater = (): void => {
        cancel = world.later(cadence * 1000, beat)
      }
      beatLater()
      return () => {
        stopped = true
        cancel()
      }
    },
  }
}
