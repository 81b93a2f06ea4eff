/** Sends and answers presence probes, greetings and reports between nodes, over the bus. */
import { subjects } from '../../../protocol/subjects.ts'
import type { Bus } from '../ports.ts'
import { LEASE_DURATION_MS, PROBE_TIMEOUT_MS } from '../timing.ts'
import type { InterestReport } from './interest.ts'

/**
 * A probe, a greeting (`joined`) or a report (`interest`). A greeting is answered with `MET`, the
 * others with `HERE`. Nodes of releases that do not know greetings or reports consider them probes.
 */
interface Question {
  readonly joined?: true
  readonly interest?: InterestReport
}
const MET = 'met'
const HERE = true

/** Direct contact between nodes, without the registry. */
export interface Neighbours {
  /** Resolves with true if a node with this id answers. */
  answers(id: string): Promise<boolean>
  /**
   * Resolves with true if the NATS servers report no subscriber for a node; with false if there is
   * one, or if that cannot be determined.
   */
  hasNoSubscriber(id: string): Promise<boolean>
  /**
   * Announces to a node that this node has joined. Resolves with true if the other node is dead,
   * has noted the join (`Membership.noteJoin`), or will note one before it receives further
   * messages.
   */
  greet(id: string): Promise<boolean>
  /** Sends a report. Resolves when the node has it, or does not answer. */
  report(id: string, interest: InterestReport): Promise<void>
}

/** Creates the probes, greetings and reports that a node sends. */
export const createNeighbours = (bus: Bus): Neighbours => {
  const ask = (id: string, question: Question, within: number) =>
    bus.request(subjects.node(id), question, within)
  return {
    answers: async (id) => typeof (await ask(id, {}, PROBE_TIMEOUT_MS)) === 'object',
    hasNoSubscriber: async (id) => (await ask(id, {}, PROBE_TIMEOUT_MS)) === 'no_responders',
    greet: async (id) => {
      const answer = await ask(id, { joined: true }, LEASE_DURATION_MS)
      // A node without a subscriber is dead, or has lost its connection and will note a join once
      // it reconnects.
      return answer === 'no_responders' || (typeof answer === 'object' && answer.answer === MET)
    },
    report: async (id, interest) => {
      await ask(id, { interest }, PROBE_TIMEOUT_MS)
    },
  }
}
/**
 * Answers probes, greetings and reports for a node, until the returned function is called.
 * @param met called for every greeting.
 * @param noted called for every report.
 */
export const listenAs = (
  bus: Bus,
  id: string,
  met: () => void,
  noted: (report: InterestReport) => void,
): (() => void) =>
  bus.subscribe(subjects.node(id), (message) => {
    const { joined, interest } = message as Question
    if (interest) noted(interest)
    if (!joined) return HERE
    met()
    return MET
  })
