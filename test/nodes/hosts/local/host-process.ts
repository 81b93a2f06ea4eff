/**
 * A host process that tests can kill. It opens the provider with the options in its first argument,
 * starts a worker with the script in its second argument, and prints `started`. With a user id as
 * its third argument, the process first switches to that user.
 */
import { createLocalProvider } from '../../../../nodes/hosts/local/provider.ts'
import { task } from './stage.ts'

const [, , options = '{}', script = 'exit 0', uid] = process.argv
if (uid !== undefined) {
  process.setgroups?.([])
  process.setgid?.(Number(uid))
  process.setuid?.(Number(uid))
}
const provider = await createLocalProvider(JSON.parse(options))
const { signal } = new AbortController()
if ('unavailable' in provider) process.stdout.write(`${JSON.stringify(provider)}\n`)
else {
  provider.onExit(async (exit) => {
    const log = async (log_name: 'stdout' | 'stderr') =>
      (await provider.logs('env_1', { log_name, tail: 1000, max_bytes: 64_000 }))?.content
    const output = { exit, stdout: await log('stdout'), stderr: await log('stderr') }
    await provider.destroy('env_1')
    const left = await provider.inspect()
    await provider.close()
    process.stdout.write(`${JSON.stringify({ ...output, left, isolation: provider.isolation })}\n`)
    process.exit(0)
  })
  await provider.provision(task('env_1', 'provision'), signal)
  await provider.startWorker(
    task('env_1'),
    {
      generation: 1,
      command: ['/bin/sh', '-c', script],
      variables: {},
      gateway_url: 'http://127.0.0.1:9',
      url_variable: 'ACME_API_URL',
      workspace_variable: 'ACME_RUNTIME_WORKSPACE',
      log_variable: 'ACME_WORKER_LOG_DIR',
      allowed_hosts: [],
    },
    signal,
  )
  process.stdout.write('started\n')
}
