/**
 * Extends the project actor with a ledger: one project sends numbered tells to another, which
 * records their senders and their order. The commands of the product tolerate repeated tells, so
 * only the ledger reveals repeats.
 */
import type { AnyActor } from '../../../actors/actor.ts'
import type { Address, Event } from '../../../protocol/entry.ts'

export interface Ledger {
  readonly added: number
  readonly heard: readonly string[]
}
interface Noted {
  readonly ledger?: Ledger
}
export interface Added extends Event {
  readonly to: string
  readonly number: number
}
interface Heard extends Event {
  readonly from: string
  readonly number: number
}

const ledgerOf = (state: Noted): Ledger => state.ledger ?? { added: 0, heard: [] }

export function withLedger(project: AnyActor): AnyActor {
  const decide: AnyActor['decide'] = {
    ...project.decide,
    'ledger.add': ((state: Noted, { to }: { to: string }) => ({
      events: [{ type: 'ledger.added', to, number: ledgerOf(state).added + 1 }],
      reply: { number: ledgerOf(state).added + 1 },
    })) as never,
    'ledger.hear': ((_: Noted, { from, number }: Heard) => ({
      events: [{ type: 'ledger.heard', from, number }],
      reply: undefined,
    })) as never,
  }
  const evolve: AnyActor['evolve'] = {
    ...project.evolve,
    'ledger.added': ((state: Noted, { number }: Added) => ({
      ...state,
      ledger: { ...ledgerOf(state), added: number },
    })) as never,
    'ledger.heard': ((state: Noted, { from, number }: Heard) => ({
      ...state,
      ledger: { ...ledgerOf(state), heard: [...ledgerOf(state).heard, `${from} ${number}`] },
    })) as never,
  }
  const react: NonNullable<AnyActor['react']> = {
    ...project.react,
    'ledger.added': (({ to, number }: Added, self: Address) => [
      {
        tell: {
          to: { kind: 'project', id: to, project: to },
          name: 'ledger.hear',
          input: { from: self.id, number },
        },
      },
    ]) as never,
  }
  return {
    ...project,
    decide,
    evolve,
    react,
    ask: { ...project.ask, ledger: ((state: Noted) => ledgerOf(state)) as never },
  }
}
