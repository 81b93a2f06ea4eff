/**
 * Collects observations from outside the service, such as answers, reads, reports and
 * notifications.
 */
import type { Outcome } from '../../../gateway/ports.ts'
import type { Address, Command, PlacedEntry } from '../../../protocol/entry.ts'
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
  /**
   * Tokens of the leases that a view would list, by worker session and then by job id. These are
   * the leases that were granted and that have not ended through a gateway yet.
   */
  readonly leases = new Map<string, Map<string, string>>()
  /**
   * The simulated time at which the last successful heartbeat of a lease was sent, by lease token.
   */
  readonly beats = new Map<string, number>()
  /** Ids of the interactions about which people were notified. */
  readonly told = new Set<string>()
  /** Live entries that reached a follower, whether it needed them or not. */
  readonly live: PlacedEntry[] = []
}
