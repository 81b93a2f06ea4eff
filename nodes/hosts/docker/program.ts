/**
 * The program of the worker in a container. By default it is the program of this installation: its
 * files are mounted read-only at their own paths, so that an image needs only Node.js, git and bash.
 * Of the project's folder only the code is mounted, because the folder may contain data.
 */
import { realpathSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { programOf, SOURCES } from '../../boot/program.mjs'

export interface WorkerProgram {
  /** The command with its arguments. */
  readonly command: readonly string[]
  /** Programs that the image must have. */
  readonly needs: readonly string[]
  /** Files and folders of this machine, and where the container has them. */
  readonly mounts: readonly { readonly source: string; readonly target: string }[]
}

const root = fileURLToPath(new URL('../../..', import.meta.url)).replace(/\/$/, '')
/** The program of this installation, which is bundled first if necessary. */
export function installedProgram(): WorkerProgram {
  const loader = import.meta.resolve('@oxc-node/core/register')
  const args = programOf(root, loader)
  const modules = join(root, 'node_modules')
  const real = realpathSync(modules)
  const bundled = args.some((arg) => arg.startsWith(modules))
  return {
    command: ['node', ...args, 'environment-worker'],
    needs: ['node', 'git'],
    mounts: [
      ...[...new Set([modules, real])].map((target) => ({ source: real, target })),
      ...(bundled ? [] : ['package.json', 'tsconfig.json', ...SOURCES])
        .map((name) => join(root, name))
        .map((path) => ({ source: path, target: path })),
    ],
  }
}
/** A program that the image has. */
export const programOfImage = (command: readonly string[]): WorkerProgram => ({
  command,
  needs: [command[0] ?? '', 'git'],
  mounts: [],
})
