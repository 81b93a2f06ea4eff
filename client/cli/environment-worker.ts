/** `baton environment-worker`: the worker that runs inside an environment. */
import type { Command } from 'commander'
import { SettingsFault, settingsOf } from '../environment/settings.ts'
import { Mistake } from './mistake.ts'
import type { Shell } from './shell.ts'

/** Adds `baton environment-worker` to a program. */
export function addEnvironmentWorker(program: Command, shell: Shell): void {
  program
    .command('environment-worker')
    .description('Run the worker of an environment; the host of the environment starts it')
    .addHelpText(
      'after',
      '\nExample:\n  $ baton environment-worker\n' +
        'Its settings are environment variables that begin with the brand of the installation:\n' +
        '  <BRAND>_API_URL                  addresses of the service, comma-separated\n' +
        '  <BRAND>_API_KEY                  credential of the worker\n' +
        '  <BRAND>_WORKER_ENVIRONMENT_ID    environment whose jobs it performs\n' +
        '  <BRAND>_RUNTIME_WORKSPACE        folder of its files\n' +
        'All variables are described in docs/environment-worker.md.\n',
    )
    .action(shell.guarded(() => run(shell)))
}

async function run({ env, note }: Shell): Promise<void> {
  const settings = readSettings(env)
  // The module is imported here, so other commands do not load it.
  const { startEnvironmentWorker } = await import('../environment/program.ts')
  const worker = await startEnvironmentWorker(settings, env, note)
  let interrupts = 0
  const interrupt = () => (interrupts++ === 0 ? worker.drain() : worker.stop())
  process.on('SIGTERM', worker.stop)
  process.on('SIGHUP', worker.abandon)
  process.on('SIGINT', interrupt)
  try {
    const end = await worker.ended
    if (end.reason === 'failed') throw end.error
  } finally {
    process.off('SIGTERM', worker.stop)
    process.off('SIGHUP', worker.abandon)
    process.off('SIGINT', interrupt)
  }
}
function readSettings(env: Shell['env']) {
  try {
    return settingsOf(env)
  } catch (error) {
    throw error instanceof SettingsFault ? new Mistake(error.message) : error
  }
}
