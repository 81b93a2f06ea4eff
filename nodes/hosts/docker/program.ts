/**
 * The program of the worker in a container. By default it is the stock worker of this installation:
 * its files are mounted read-only at their own paths, so that an image needs only Node.js, git and
 * bash.
 */
import { realpathSync } from 'node:fs'
import { stockWorker } from '../stock-worker.ts'

export interface WorkerProgram {
  /** The command with its arguments. */
  readonly command: readonly string[]
  /** Programs that the image must have. */
  readonly needs: readonly string[]
  /** Files and folders of this machine, and where the container has them. */
  readonly mounts: readonly { readonly source: string; readonly target: string }[]
}

/** The stock worker of this installation. The image has a Node.js of its own. */
export function installedProgram(): WorkerProgram {
  const { command, readable } = stockWorker()
  const [, ...args] = command
  const mounts = new Map<string, string>()
  for (const path of readable) {
    const real = realpathSync(path)
    // A link, such as one to shared packages, is a folder in the container, and its target exists.
    mounts.set(path, real)
    mounts.set(real, real)
  }
  return {
    command: ['node', ...args],
    needs: ['node', 'git'],
    mounts: [...mounts].map(([target, source]) => ({ source, target })),
  }
}
/** A program that the image has. */
export const programOfImage = (command: readonly string[]): WorkerProgram => ({
  command,
  needs: [command[0] ?? '', 'git'],
  mounts: [],
})
