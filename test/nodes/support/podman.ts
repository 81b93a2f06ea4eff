/**
 * A container engine for tests: Podman's API service with its own storage in a temporary folder,
 * and images with this machine's Node.js, bash and, unless omitted, git. Nothing is downloaded.
 */
import { execFileSync, spawn, spawnSync } from 'node:child_process'
import {
  chmodSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  realpathSync,
  rmSync,
  symlinkSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { createEngine } from '../../../nodes/hosts/docker/engine.ts'
import { endWithUs } from '../../../nodes/process/ending.ts'

export interface Podman {
  readonly socket: string
  run(...args: readonly string[]): string
  /** Stops the API service and its containers, and removes its storage. */
  stop(): Promise<void>
}
export const IMAGE = 'localhost/baton-test:1'
export const IMAGE_WITHOUT_GIT = 'localhost/baton-test-without-git:1'

/** The programs of the images besides Node.js. */
const PROGRAMS = ['bash', 'git', 'cat', 'chown', 'id', 'ls', 'mkdir', 'sleep']
const pathOf = (name: string): string =>
  execFileSync('sh', ['-c', `command -v ${name}`], { encoding: 'utf8' }).trim()

/** Returns the reason why the tests cannot run on this machine, or undefined if they can run. */
function whyNoPodman(): string | undefined {
  if (process.platform !== 'linux' || process.getuid?.() !== 0) return 'Linux and root are needed'
  const missing = ['podman', 'runc', 'tar', 'ldd', ...PROGRAMS].filter(
    (name) => spawnSync('sh', ['-c', `command -v ${name}`]).status !== 0,
  )
  if (missing.length === 0) return undefined
  return `${missing.join(', ')} missing (Debian: apt install podman runc git)`
}

/** Creates the files of an image: programs, and the libraries that they load. */
function makeRoot(root: string, programs: Readonly<Record<string, string>>): void {
  for (const name of ['usr/bin', 'tmp', 'etc', 'proc', 'dev', 'sys'])
    mkdirSync(join(root, name), { recursive: true })
  chmodSync(join(root, 'tmp'), 0o1777)
  symlinkSync('usr/bin', join(root, 'bin'))
  symlinkSync('bash', join(root, 'usr/bin/sh'))
  for (const [name, path] of Object.entries(programs)) {
    cpSync(realpathSync(path), join(root, 'usr/bin', name))
    const libraries = execFileSync('ldd', [realpathSync(path)], { encoding: 'utf8' })
    for (const [library] of libraries.matchAll(/\/\S+/g)) {
      mkdirSync(join(root, dirname(library)), { recursive: true })
      cpSync(realpathSync(library), join(root, library))
    }
  }
}

/** The `skip` option of tests that need the engine: the reason, or false when they can run. */
export const skip: string | false = whyNoPodman() ?? false

/**
 * Starts the service and creates the images, within a few seconds.
 * @param names images to create.
 */
export async function startPodman(
  names: readonly (typeof IMAGE | typeof IMAGE_WITHOUT_GIT)[] = [IMAGE],
): Promise<Podman> {
  const folder = mkdtempSync(join(tmpdir(), 'baton-podman-'))
  const socket = join(folder, 'api.sock')
  const flags = [
    ...['--root', join(folder, 'root'), '--runroot', join(folder, 'run')],
    ...['--tmpdir', join(folder, 'libpod'), '--events-backend', 'file'],
    ...['--runtime', 'runc', '--cgroup-manager', 'cgroupfs'],
  ]
  const run = (...args: readonly string[]): string =>
    execFileSync('podman', [...flags, ...args], { encoding: 'utf8', stdio: 'pipe' })
  const programs = Object.fromEntries(PROGRAMS.map((name) => [name, pathOf(name)]))
  const { git: _, ...withoutGit } = programs
  for (const image of names) {
    const root = join(folder, 'image')
    makeRoot(root, { node: process.execPath, ...(image === IMAGE ? programs : withoutGit) })
    execFileSync('tar', ['-C', root, '-cf', `${root}.tar`, '.'])
    run('import', `${root}.tar`, image)
    rmSync(root, { recursive: true })
    rmSync(`${root}.tar`)
  }
  const child = spawn('podman', [...flags, 'system', 'service', '--time=0', `unix://${socket}`], {
    // The monitor of a container writes files to the folder in which the service runs.
    cwd: folder,
    stdio: 'ignore',
  })
  const release = endWithUs(child)
  const ended = new Promise<void>((done) => child.once('exit', () => done()))
  const engine = createEngine(socket)
  for (let attempt = 0; ; attempt++) {
    try {
      await engine.call('GET', '/version')
      break
    } catch (error) {
      if (attempt === 100) throw error
      await sleep(50)
    }
  }
  return {
    socket,
    run,
    async stop() {
      run('rm', '--all', '--force')
      release()
      child.kill('SIGTERM')
      await ended
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
