/** What the world outside the service saw: every answer, read and report, with the times of the simulation. */
import type { Outcome } from '../../../gateway/ports.ts'
import type { Address, Command, Placed } from '../../../protocol/entry.ts'
import type { JobReport } from '../../../protocol/internal.ts'
import type { Verdict } from '../clients/hub.ts'

export interface Sent {
  readonly command: Command
  readonly answers: { readonly from: number; readonly at: number; readonly outcome: Outcome }[]
}
export interface Read {
  readonly to: Address
  readonly name: string
  readonly from: number
  readonly at: number
  readonly reply: unknown
}

export class Records {
  readonly sent = new Map<string, Sent>()
  readonly reads: Read[] = []
  readonly reports = new Map<string, { readonly report: JobReport; readonly to: Address }>()
  readonly verdicts: { readonly id: string; readonly verdict: Verdict }[] = []
  /** Leases by worker session, as the view knows them: given out, and not known to have ended. */
  readonly leases = new Map<string, Map<string, string>>()
  /** When the last heartbeat of a lease was sent that was answered as alive, by lease token. */
  readonly beats = new Map<string, number>()
  /** Interactions of which people were told. */
  readonly told = new Set<string>()
  /** Entries that were published, whoever received them. */
  readonly live: Placed[] = []
}
