/**
 * Random orders of attempts, losses, repeats and late reports. Invariants: at most ten attempts are
 * made, one at a time, with the same content, and none after the end; the delivery ends once the
 * receiver accepts it.
 */
import fc from 'fast-check'
import t from 'tap'
import { deliveryActor } from '../../../actors/webhooks/delivery.ts'
import {
  type AttemptOutcome,
  type DeliveryOpening,
  MAX_ATTEMPTS,
} from '../../../protocol/webhooks/delivery.ts'
import type { DeliveryRecord } from '../../../protocol/webhooks/rows.ts'
import { given, type Outcome, type Scene } from '../../support/given.ts'

interface State {
  readonly record: DeliveryRecord
  readonly job_id?: string
  readonly next?: number
}
const opening: DeliveryOpening = {
  to: { kind: 'callback', callback_url: 'https://example.org/', secret_ref: 'key' },
  event_type: 'interaction.resolved',
  body: { status: 'completed' },
}
const outcome = fc.constantFrom<AttemptOutcome | undefined>(
  { delivered: true },
  { delivered: false, error: 'later', pause: 5000 },
  { delivered: false, error: 'never' },
  undefined,
)
const step = fc.oneof(
  fc.record({ do: fc.constant('open' as const) }),
  fc.record({ do: fc.constant('wake' as const) }),
  fc.record({ do: fc.constant('pass' as const) }),
  fc.record({ do: fc.constant('begin' as const), stale: fc.boolean() }),
  fc.record({ do: fc.constant('settle' as const), stale: fc.boolean(), outcome }),
)

t.test(
  'at most ten attempts, one at a time, with the same content, none after the end',
  async (t) => {
    void fc.assert(
      fc.property(fc.array(step, { maxLength: 80 }), (steps) => {
        let scene: Scene<State> = given<State>(deliveryActor).when('delivery.open', opening)
        const jobs = [scene.state.job_id ?? '']
        let sent = 0
        let taken = false
        const play = (name: string, input: object, at = scene.at): Outcome<State> => {
          const before = scene.state
          const over = before.record.status === 'delivered' || before.record.status === 'failed'
          const done = scene.when(name, input, { at })
          if (over && (done.events.length > 0 || done.tells.length > 0))
            throw new Error(`${name} did something after the end`)
          if (done.tells.length > 0 && before.job_id !== undefined)
            throw new Error('two jobs at a time')
          scene = done
          const { job_id } = scene.state
          if (job_id !== undefined && !jobs.includes(job_id)) jobs.push(job_id)
          return done
        }
        const begin = (job_id: string) => {
          const { attempt } = play('delivery.begin', { job_id }).reply as { attempt: number }
          if (attempt === 0) return false
          if (taken) throw new Error('sent after it was taken')
          if (attempt !== ++sent) throw new Error('an attempt was not counted')
          if (JSON.stringify(scene.ask('content')) !== JSON.stringify(opening))
            throw new Error('the content changed')
          return true
        }
        const settle = (job_id: string, result: AttemptOutcome | undefined) => {
          const current = job_id === scene.state.job_id
          play('job.settled', {
            job_id,
            outcome: result ? 'completed' : 'failed',
            attempt: 1,
            ...(result && { result }),
          })
          if (current && result?.delivered) taken = true
        }
        const jobOf = (stale: boolean) => (stale ? jobs[0] : scene.state.job_id) ?? ''
        for (const one of steps) {
          if (one.do === 'open') play('delivery.open', opening)
          else if (one.do === 'wake') play('wake', {})
          else if (one.do === 'pass') play('wake', {}, scene.deadline() ?? scene.at)
          else if (one.do === 'begin') begin(jobOf(one.stale))
          else settle(jobOf(one.stale), one.outcome)
        }
        // After any history, the delivery ends once the receiver accepts it.
        for (
          let n = 0;
          scene.state.record.status === 'pending' || scene.state.record.status === 'processing';
          n++
        ) {
          if (n > 3) throw new Error('it never ends')
          if (scene.state.job_id === undefined) play('wake', {}, scene.deadline() ?? scene.at)
          const job = scene.state.job_id ?? ''
          if (begin(job)) settle(job, { delivered: true })
          else settle(job, undefined)
        }
        return (
          sent <= MAX_ATTEMPTS &&
          scene.state.record.attempts === sent &&
          scene.deadline() === undefined &&
          scene.state.job_id === undefined
        )
      }),
      { numRuns: 2000 },
    )
    t.pass()
  },
)
