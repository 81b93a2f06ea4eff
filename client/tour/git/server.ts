/**
 * A git server on loopback, for tests and the tour: the smart HTTP protocol of git over bare
 * repositories in a folder (https://git-scm.com/docs/http-protocol). Each repository has a read
 * token and a push token. Clients send a token as the password of HTTP Basic authentication.
 *
 * Invariants:
 * - Only repositories that were added are served, by their exact names.
 * - The read token never permits a push: such a request is answered with 403.
 * - The number of processes, the size of a request and the duration of a process are bounded.
 */
import { execFile, spawn } from 'node:child_process'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { join } from 'node:path'
import { Transform, type TransformCallback } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { promisify } from 'node:util'
import { createGunzip } from 'node:zlib'

const exec = promisify(execFile)
/**
 * Maximum number of concurrent git processes, maximum size of a request in bytes after
 * decompression, and maximum duration of a process in milliseconds.
 */
const LIMITS = { processes: 16, bytes: 64 * 1024 * 1024, process_ms: 60_000 } as const

interface GitTokens {
  readonly read: string
  readonly push: string
}
interface GitRequest {
  readonly repository: string
  readonly service: Service
  readonly status: number
  readonly username?: string
}
export interface GitServer {
  /** Base URL, without a trailing slash. The URL of a repository is `<url>/<full name>.git`. */
  readonly url: string
  readonly requests: readonly GitRequest[]
  /**
   * Adds an empty bare repository with the branch `main`, or replaces the tokens of an existing
   * one.
   * @returns the folder of the repository.
   */
  add(full_name: string, tokens: GitTokens): Promise<string>
  close(): Promise<void>
}

type Service = 'git-upload-pack' | 'git-receive-pack'
/** The repository and the git service to which a request is addressed. */
interface Wanted {
  readonly repository: string
  readonly service: Service
  /** Whether only the references are requested. */
  readonly advertise: boolean
}

const ROUTE = /^\/(.+)\.git\/(info\/refs|git-upload-pack|git-receive-pack)$/
function wantedBy({ method, url = '' }: IncomingMessage): Wanted | undefined {
  const { pathname, searchParams } = new URL(url, 'http://localhost')
  const [, repository, path] = ROUTE.exec(pathname) ?? []
  const advertise = path === 'info/refs'
  const service = advertise ? searchParams.get('service') : path
  return repository !== undefined &&
    method === (advertise ? 'GET' : 'POST') &&
    (service === 'git-upload-pack' || service === 'git-receive-pack')
    ? { repository, service, advertise }
    : undefined
}

/** Returns the user name and the password of HTTP Basic authentication. */
function basicOf({ headers }: IncomingMessage): { username?: string; password?: string } {
  const [, encoded = ''] = /^Basic (.+)$/i.exec(headers.authorization ?? '') ?? []
  const [, username, password] =
    /^([^:]*):([\s\S]*)$/.exec(Buffer.from(encoded, 'base64').toString()) ?? []
  return { ...(username && { username }), ...(password && { password }) }
}

/** Creates a pass-through stream that fails if it receives more than `most` bytes. */
const limited = (most: number): Transform => {
  let size = 0
  return new Transform({
    transform(chunk: Buffer, _, done: TransformCallback) {
      size += chunk.length
      done(size > most ? new Error(`the request is larger than ${most} bytes`) : null, chunk)
    },
  })
}

/** Starts a server for the repositories in a folder. */
export async function startGitServer(folder: string): Promise<GitServer> {
  const repositories = new Map<string, GitTokens>()
  const requests: GitRequest[] = []
  const running = new Set<() => void>()
  /** Arguments of `env` that isolate git from the configuration of the user and the machine. */
  const isolated = [
    ...['GIT_DIR', 'GIT_WORK_TREE', 'GIT_INDEX_FILE'].flatMap((name) => ['-u', name]),
    `HOME=${folder}`,
    'GIT_CONFIG_NOSYSTEM=1',
    'GIT_CONFIG_GLOBAL=/dev/null',
  ]
  const folderOf = (full_name: string) => join(folder, `${full_name}.git`)

  function denial({ repository, service }: Wanted, password?: string): 401 | 403 | 404 | undefined {
    const tokens = repositories.get(repository)
    if (password === undefined) return 401
    if (!tokens) return 404
    if (password === tokens.push) return undefined
    if (password !== tokens.read) return 401
    return service === 'git-receive-pack' ? 403 : undefined
  }

  async function serve(
    request: IncomingMessage,
    response: ServerResponse,
    { repository, service, advertise }: Wanted,
  ): Promise<void> {
    const protocol = String(request.headers['git-protocol'] ?? '')
    const child = spawn(
      'env',
      [
        ...isolated,
        ...(/^[\w=:.-]{1,100}$/.test(protocol) ? [`GIT_PROTOCOL=${protocol}`] : []),
        'git',
        service.slice('git-'.length),
        '--stateless-rpc',
        ...(advertise ? ['--advertise-refs'] : []),
        folderOf(repository),
      ],
      {
        stdio: ['pipe', 'pipe', 'ignore'],
        timeout: LIMITS.process_ms,
      },
    )
    const kill = () => void child.kill('SIGKILL')
    running.add(kill)
    child.on('error', () => response.destroy())
    child.on('close', () => running.delete(kill))
    response.on('close', kill)
    response.writeHead(200, {
      'content-type': `application/x-${service}-${advertise ? 'advertisement' : 'result'}`,
      'cache-control': 'no-cache',
    })
    if (advertise) {
      const line = `# service=${service}\n`
      response.write(`${(line.length + 4).toString(16).padStart(4, '0')}${line}0000`)
    }
    const unzip = request.headers['content-encoding'] === 'gzip' ? [createGunzip()] : []
    await Promise.all([
      pipeline([request, ...unzip, limited(LIMITS.bytes), child.stdin]),
      pipeline(child.stdout, response),
    ])
  }

  const server = createServer((request, response) => {
    const wanted = wantedBy(request)
    const { username, password } = basicOf(request)
    const status = !wanted
      ? 404
      : (denial(wanted, password) ?? (running.size < LIMITS.processes ? 200 : 503))
    if (wanted) {
      const { repository, service } = wanted
      requests.push({ repository, service, status, ...(username !== undefined && { username }) })
    }
    if (wanted && status === 200) {
      serve(request, response, wanted).catch(() => response.destroy())
      return
    }
    response.writeHead(status, {
      ...(status === 401 && { 'www-authenticate': 'Basic realm="git"' }),
    })
    response.end()
    request.resume()
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(0, '127.0.0.1', resolve)
  })
  const address = server.address()
  const port = typeof address === 'object' && address ? address.port : 0

  return {
    url: `http://127.0.0.1:${port}`,
    requests,
    add: async (full_name, tokens) => {
      const at = folderOf(full_name)
      if (!repositories.has(full_name))
        await exec('env', [
          ...isolated,
          ...['git', 'init', '--quiet', '--bare', '--initial-branch=main', at],
        ])
      repositories.set(full_name, tokens)
      return at
    },
    close: async () => {
      for (const kill of running) kill()
      server.closeAllConnections()
      await new Promise<void>((resolve) => server.close(() => resolve()))
    },
  }
}
