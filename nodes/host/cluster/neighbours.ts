/** Nodes that reach each other by their names, over the bus: to find out who is there, and to be known. */
import { subjects } from '../../../protocol/subjects.ts'
import type { Neighbours } from './membership.ts'
import type { Bus } from '../ports.ts'
import { LEASE } from '../timing.ts'

/** Milliseconds to wait for a node that is asked whether it is there. */
const THERE = 300
/** What is asked, and what is answered. Releases that know no greeting answer anything else to one. */
interface Question {
  readonly joined?: true
}
const MET = 'met'
const HERE = true

/** The neighbours of a node. */
export const createNeighbours = (
  bus: Bus,
): Neighbours & { there(id: string): Promise<boolean> } => {
  const ask = (id: string, question: Question, within: number) =>
    bus.request(subjects.node(id), question, within)
  return {
    /** Whether a node of this name answers. */
    there: async (id) => typeof (await ask(id, {}, THERE)) === 'object',
    nobody: async (id) => (await ask(id, {}, THERE)) === 'no_responders',
    greet: async (id) => {
      const answer = await ask(id, { joined: true }, LEASE)
      // Of whom the servers know nothing is dead, or has lost its connection and will be unsure when it has one again.
      return answer === 'no_responders' || (typeof answer === 'object' && answer.answer === MET)
    },
  }
}
/** Listen in the name of a node. @param met told of every node that has joined. */
export const listenAs = (bus: Bus, id: string, met: () => void): (() => void) =>
  bus.subscribe(subjects.node(id), (message) => {
    if (!(message as Question).joined) return HERE
    met()
    return MET
  })
