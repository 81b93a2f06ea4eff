/** Sends and answers presence probes and greetings between nodes, over the bus. */
import { subjects } from '../../../protocol/subjects.ts'
import type { Bus } from '../ports.ts'
import { LEASE_DURATION_MS, PROBE_TIMEOUT_MS } from '../timing.ts'

/**
 * A probe, or a greeting (`joined`). A greeting is answered with `MET`, a probe with `HERE`. Nodes
 * of releases without greetings answer a greeting differently.
 */
interface Question {
  readonly joined?: true
}
const MET = 'met'
const HERE = true

/** Creates the probes and greetings that a node sends. */
export const createNeighbours = (
  bus: Bus,
): Neighbours & { there(id: string): Promise<boolean> } => {
  const ask = (id: string, question: Question, within: number) =>
    bus.request(subjects.node(id), question, within)
  return {
    /** Whether a node with this id answers. */
    there: async (id) => typeof (await ask(id, {}, PROBE_TIMEOUT_MS)) === 'object',
    nobody: async (id) => (await ask(id, {}, PROBE_TIMEOUT_MS)) === 'no_responders',
    greet: async (id) => {
      const answer = await ask(id, { joined: true }, LEASE_DURATION_MS)
      // A node without a subscriber is dead, or has lost its connection and will be `unsure` once
      // it reconnects.
      return answer === 'no_responders' || (typeof answer === 'object' && answer.answer === MET)
    },
  }
}
/**
 * Answers probes and greetings for a node, until the returned function is called.
 * @param met called for every greeting.
 */
export const listenAs = (bus: Bus, id: string, met: () => void): (() => void) =>
  bus.subscribe(subjects.node(id), (message) => {
    if (!(message as Question).joined) return HERE
    met()
    return MET
  })

/** Direct contact between nodes, without the registry. */
export interface Neighbours {
  /**
   * Resolves with true if the NATS servers report no subscriber for a node; with false if there is
   * one, or if that cannot be determined.
   */
  nobody(id: string): Promise<boolean>
  /**
   * Announces to a node that this node has joined. Resolves with true if the other node is dead, is
   * now `unsure` (`membership.ts`), or will be `unsure` before it receives further messages.
   */
  greet(id: string): Promise<boolean>
}
