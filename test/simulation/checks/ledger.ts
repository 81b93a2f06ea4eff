/**
 * The project actor with a few lines more: a project that is told to add tells another one, which writes down whom it heard
 * and in what order. No product command is harmed by a repeated tell, so this one is there to notice.
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

/** Give a project actor a ledger. */
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
