/**
 * The program of the worker in a container. By default it is the stock worker of this installation:
 * its files are mounted read-only at their own paths, so that an image needs only Node.js, git and
 * bash.
 */
import { realpathSync } from 'node:fs'
import { stockWorker } from '../stock-worker.ts'

export interface WorkerProgram {
  readonly command: readonly string[]
  /** Programs that the image must have. */
  readonly needs: readonly string[]
  /** Files and folders of this machine, and their paths in the container. */
  readonly mounts: readonly { readonly source: string; readonly target: string }[]
}

/** Returns the stock worker of this installation. It runs with the Node.js of the image. */
export function installedProgram(): WorkerProgram {
  const { command, readable } = stockWorker()
  const [, ...args] = command
  const mounts = new Map<string, string>()
  for (const path of readable) {
    const real = realpathSync(path)
    // If the path is a symbolic link, such as one to shared packages, its target is mounted twice:
    // at the path of the link and at its own path.
    mounts.set(path, real)
    mounts.set(real, real)
  }
  return {
    command: ['node', ...args],
    needs: ['node', 'git'],
    mounts: [...mounts].map(([target, source]) => ({ source, target })),
  }
}
/** Returns a worker program that the image contains. */
export const programOfImage = (command: readonly string[]): WorkerProgram => ({
  command,
  needs: [command[0] ?? '', 'git'],
  mounts: [],
})
