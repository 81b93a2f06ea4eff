/**
 * The scripted model. It executes the script in the agent's instructions, including
 * the delays of the script.
 */
import { ExecutorFault, failedOutcome } from '../faults.ts'
import { answeredOutcome, type GenerateAnswer } from '../speech.ts'
import { type Play, play } from './play.ts'
import { readScript } from './read.ts'

/**
 * Maximum number of cached scripts. An agent's script is needed for each of its generations, and
 * parsing it takes a quarter of a millisecond.
 */
const MAX_CACHED = 32

/**
 * Creates the model.
 * @param later calls a function after a number of milliseconds. The returned function cancels the
 *   call.
 */
export function scriptedModel(later: (ms: number, run: () => void) => () => void): GenerateAnswer {
  const scripts = new Map<string, ReturnType<typeof readScript>>()
  const scriptOf = (instructions: string) => {
    let script = scripts.get(instructions)
    if (script === undefined) {
      if (scripts.size >= MAX_CACHED) scripts.clear()
      scripts.set(instructions, (script = readScript(instructions)))
    }
    return script
  }
  return async ({ id, request, attempt, signal, show }) => {
    const script = scriptOf(request.system?.[0]?.text ?? '')
    if ('wrong' in script)
      return failedOutcome(
        new ExecutorFault('script_invalid', `The script ${script.wrong}.`),
        attempt,
        0,
      )
    const played = tryPlay(script, request, attempt, id)
    if (played instanceof ExecutorFault) return failedOutcome(played, attempt, 0)
    const { delay, pace, chunks, fault, message } = played
    await pause(delay)
    for (const [index, chunk] of chunks.entries()) {
      if (index > 0) await pause(pace)
      if (signal.aborted)
        return failedOutcome(
          new ExecutorFault('stopped', 'The generation was stopped.'),
          attempt,
          0,
        )
      show(chunk)
    }
    return fault ? failedOutcome(fault, attempt, 0) : answeredOutcome(message)

    function pause(ms: number): Promise<void> | undefined {
      if (ms === 0 || signal.aborted) return undefined
      return new Promise((done) => {
        const over = () => {
          cancel()
          signal.removeEventListener('abort', over)
          done()
        }
        const cancel = later(ms, over)
        signal.addEventListener('abort', over)
      })
    }
  }
}

/** Computes the course of an attempt, or returns the fault of its script. */
function tryPlay(...args: Parameters<typeof play>): Play | ExecutorFault {
  try {
    return play(...args)
  } catch (error) {
    if (error instanceof ExecutorFault) return error
    throw error
  }
}
