/** Generates random small workflows of actions, sleeps, interactions and waits for events. */
import type { Spec, Step } from '../../../protocol/workflows/spec.ts'
import type { Dice } from '../faults/dice.ts'

export const people = ['user_a', 'user_b', 'user_c'] as const
/** Names of the signals that workflows wait for, and of the queues that workflows use. */
export const signals = ['go', 'on'] as const
const queues = ['main', 'side'] as const

function asking(dice: Dice): Extract<Step, { kind: 'interaction' }>['config'] {
  const targets = people.slice(0, 1 + dice.below(2))
  const type = dice.pick(['any_of', 'all_of', 'quorum'] as const) ?? 'any_of'
  return {
    protocol: 'request_approval',
    prompt: 'Well?',
    targets: [...targets],
    spec: { mode: 'confirm' },
    resolution_policy: {
      type,
      ...(type === 'quorum' && { threshold: targets.length }),
      ...(dice.chance(0.25) && { review: { reviewer_user_ids: [people[2]] } }),
    },
    ...(dice.chance(0.4) && { expires_in: `${1 + dice.below(8)}s` }),
    ...(dice.chance(0.5) && { on_expiry: 'continue' }),
    ...(dice.chance(0.3) && { on_cancel: 'fail' }),
  }
}

const awaiting = (dice: Dice): Extract<Step, { kind: 'wait_for_event' }>['config'] => ({
  event_type:
    dice.pick([
      'order.paid',
      'order.*',
      'run.completed',
      'run.*',
      'interaction.resolved',
    ] as const) ?? 'order.paid',
  ...(dice.chance(0.3) && { match: { n: dice.below(3) } }),
  ...(dice.chance(0.3) && { condition: 'event.n > 0' }),
})

function stepOf(dice: Dice, index: number): Step {
  const id = `s${index}`
  const rest = {
    id,
    ...(dice.chance(0.6) && {
      retry: {
        max_attempts: 1 + dice.below(4),
        ...(dice.chance(0.3) && { delay: `${dice.below(800)}ms` }),
      },
    }),
    ...(dice.chance(0.15) && { timeout: { duration: `${500 + dice.below(6000)}ms` } }),
    ...(dice.chance(0.05) && { if: dice.chance(0.5) ? 'true' : 'false' }),
  }
  const kind = dice.unit()
  if (kind < 0.6)
    return {
      ...rest,
      kind: 'action',
      config: { action_name: dice.chance(0.7) ? 'work' : 'toil', parameters: { n: index } },
    }
  if (kind < 0.74) return { ...rest, kind: 'sleep', config: { duration: `${dice.below(2500)}ms` } }
  if (kind < 0.88) return { ...rest, kind: 'interaction', config: asking(dice) }
  if (kind < 0.93)
    return {
      ...rest,
      kind: 'wait_for_event',
      config: { event_type: `signal.${dice.pick(signals) ?? 'go'}` },
    }
  return { ...rest, kind: 'wait_for_event', config: awaiting(dice) }
}

export const specOf = (dice: Dice): Spec => ({
  steps: Array.from({ length: 1 + dice.below(4) }, (_, index) => stepOf(dice, index)),
  queue: dice.pick(queues) ?? 'main',
  ...(dice.chance(0.08) && { limits: { wall_clock_timeout: `${1 + dice.below(8)}s` } }),
})
