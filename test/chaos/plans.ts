/**
 * The kinds of runs that the load starts, their weights, and the later requests of their clients.
 */
import type { Dice } from '../simulation/faults/dice.ts'
import type { Ending } from './history.ts'

type Spec = Readonly<Record<string, unknown>>
export interface Plan {
  readonly name: string
  readonly weight: number
  readonly spec: Spec
  readonly ends: readonly Ending[]
  /** The client's later request. It is sent after a random delay, except for `cancel at once`. */
  readonly then?: 'signal' | 'cancel' | 'cancel at once'
  /** Whether the client requests a retry after a failure. */
  readonly retried?: true
  /** Whether the run lasts long enough to be followed through a fault. */
  readonly long?: true
}

const action = (id: string, action_name: string, max_attempts: number): Spec => ({
  id,
  kind: 'action',
  retry: { max_attempts },
  config: { action_name, parameters: { n: '${{ input.n }}' } },
})
const work = (id: string): Spec => action(id, 'work', 10)
const nap = (id: string, duration: string): Spec => ({ id, kind: 'sleep', config: { duration } })
const gate: Spec = { id: 'gate', kind: 'wait_for_event', config: { event_type: 'signal.go' } }

const plans: readonly Plan[] = [
  { name: 'single', weight: 56, spec: { steps: [work('only')] }, ends: ['completed'] },
  {
    name: 'few',
    weight: 16,
    spec: { steps: [work('first'), nap('rest', '200ms'), work('last')] },
    ends: ['completed'],
  },
  {
    name: 'long',
    weight: 3,
    spec: {
      steps: [
        work('a'),
        nap('b', '2s'),
        work('c'),
        nap('d', '3s'),
        work('e'),
        nap('f', '3s'),
        work('g'),
      ],
    },
    ends: ['completed'],
    long: true,
  },
  {
    name: 'signalled',
    weight: 8,
    spec: { steps: [gate, work('after')] },
    ends: ['completed'],
    then: 'signal',
    long: true,
  },
  {
    name: 'cancelled',
    weight: 5,
    spec: { steps: [work('before'), nap('for-ever', '1h')] },
    ends: ['cancelled'],
    then: 'cancel',
  },
  {
    name: 'raced',
    weight: 3,
    spec: { steps: [work('racing')] },
    ends: ['completed', 'cancelled'],
    then: 'cancel at once',
  },
  {
    name: 'unsteady',
    weight: 5,
    spec: { steps: [work('before'), action('unsteady', 'unsteady', 10)] },
    ends: ['completed'],
    retried: true,
  },
  {
    name: 'retried',
    weight: 4,
    spec: { steps: [work('before'), action('unsteady', 'unsteady', 1)] },
    ends: ['completed'],
    retried: true,
  },
]
const whole = plans.reduce((sum, { weight }) => sum + weight, 0)

export function draw(dice: Dice): Plan {
  let at = dice.below(whole)
  for (const plan of plans) {
    at -= plan.weight
    if (at < 0) return plan
  }
  throw new Error('the weights do not add up')
}
