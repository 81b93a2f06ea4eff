/**
 * `baton apply`, `baton diff` and `baton check`. An apply performs exactly the plan that was shown.
 * If the project has changed since, the service rejects the plan, and the command makes a new one.
 *
 * Exit codes: 0 done, or nothing to do; 1 failed, or not confirmed; 2 a plan that is not empty,
 * with `--plan` and `diff`; 130 interrupted.
 */
import type { Command } from 'commander'
import { api } from '../../../protocol/api.ts'
import type { ApplyResult } from '../../../protocol/blueprints/schema.ts'
import { client } from '../../client.ts'
import { BatonError } from '../../errors.ts'
import type { Transport } from '../../transport.ts'
import {
  type ConnectionFlags,
  connected,
  connectionOf,
  outlastingRestarts,
} from '../connection/connection.ts'
import { Mistake } from '../mistake.ts'
import type { Shell } from '../shell.ts'
import { type Blueprint, type Overrides, requestOf } from './documents.ts'
import { placeText } from './located.ts'
import { isEmpty, planLines, resultLine, setsVersion } from './plan.ts'
import { readBlueprints } from './read.ts'

interface Flags extends ConnectionFlags {
  readonly file: readonly string[]
  readonly plan?: true
  readonly yes?: true
  readonly prune?: true
  readonly protect?: boolean
  readonly namespace?: string
  readonly blueprintKey?: string
  readonly blueprintVersion?: string
  readonly json?: true
}
/** Request timeout in milliseconds. Applying many resources takes longer than other requests. */
const TIMEOUT_MS = 600_000
/**
 * Maximum number of attempts while another request is changing the blueprint, and the pause between
 * two attempts in milliseconds.
 */
const BUSY = { tries: 15, pause: 2000 } as const
/**
 * Maximum number of plans that are tried per blueprint. A new plan is needed whenever the project
 * has changed.
 */
const MAX_PLANS = 5
const EXIT_CHANGES = 2
const EXIT_INTERRUPTED = 130
const include = ['plan', 'drift', 'orphans', 'further_types'] as const

const files = (command: Command): Command =>
  command
    .requiredOption(
      '-f, --file <path>',
      'file, folder, or - for standard input; can be repeated',
      (path: string, before: string[] | undefined) => [...(before ?? []), path],
    )
    .option('--namespace <text>', 'namespace of the blueprint, instead of that of the files')
    .option('--blueprint-key <text>', 'key of the blueprint, instead of that of the files')
    .option('--blueprint-version <text>', 'version to store, such as a commit')
const changing = (command: Command): Command =>
  files(command)
    .option('--prune', 'delete resources of the blueprint that the files do not name')
    .option('--protect', 'protect the resources from changes outside of the blueprint')
    .option('--no-protect', 'stop protecting the resources')

const overridesOf = ({ namespace, blueprintKey, blueprintVersion, protect }: Flags): Overrides => ({
  ...(namespace !== undefined && { namespace }),
  ...(blueprintKey !== undefined && { blueprint_key: blueprintKey }),
  ...(blueprintVersion !== undefined && { blueprint_version: blueprintVersion }),
  ...(protect !== undefined && { protect_resources: protect }),
})

/** Adds `baton apply`, `baton diff` and `baton check` to a program. */
export function addApply(program: Command, shell: Shell): void {
  const apply = changing(
    connected(
      program
        .command('apply')
        .description('Bring a project to the state that files describe, after showing the plan'),
    ),
  )
    .option('--plan', 'only show the plan; exit code 2 if it is not empty')
    .option('-y, --yes', 'perform the plan without asking for confirmation')
    .option('--json', 'print the answers of the service as JSON; requires --plan or --yes')
    .addHelpText(
      'after',
      '\nExamples:\n  $ baton apply -f examples/support-desk --plan\n' +
        '  $ baton apply -f examples/support-desk\n' +
        '  $ baton apply -f desk --prune --yes --blueprint-version "$(git rev-parse HEAD)"\n' +
        EXIT_CODES,
    )
  apply.action(shell.guarded(() => run(apply, shell, {})))
  const diff = changing(
    connected(
      program
        .command('diff')
        .description('Compare a project with the files that describe it, texts line by line'),
    ),
  )
    .option('--json', 'print the answers of the service as JSON')
    .addHelpText('after', `\nExample:\n  $ baton diff -f examples/support-desk\n${EXIT_CODES}`)
  diff.action(shell.guarded(() => run(diff, shell, { plan: true, texts: true })))
  const check = files(
    program.command('check').description('Check files that describe a project, without a service'),
  ).addHelpText('after', '\nExample:\n  $ baton check -f examples/support-desk\n')
  check.action(
    shell.guarded(async () => {
      const flags = check.opts<Flags>()
      const blueprints = readBlueprints(flags.file, shell.env, overridesOf(flags))
      const count = blueprints.reduce((sum, { resources }) => sum + resources.length, 0)
      shell.note(`No faults in ${count} resources of ${blueprints.length} blueprints.`)
    }),
  )
}
const EXIT_CODES =
  'Exit codes: 0 done or nothing to do, 1 failed, 2 the shown plan is not empty, 130 interrupted.\n'

interface Target {
  readonly blueprint: Blueprint
  readonly call: (mode: 'preview' | 'apply', plan_id?: string) => Promise<ApplyResult>
}

/** Adds file locations to an error that refers to resources or their fields. */
function explained(error: unknown, blueprint: Blueprint): unknown {
  if (!(error instanceof BatonError)) return error
  const { code, message, details } = error
  const { placeOf } = requestOf(blueprint)
  const fields = Array.isArray(details?.['fields'])
    ? (details['fields'] as { readonly field?: unknown; readonly message?: unknown }[])
    : [{ field: details?.['path'] ?? details?.['field'], message: undefined }]
  const lines = fields.flatMap(({ field, message: text }) => {
    const place = placeOf(String(field))
    return place ? [`${placeText(place)}: ${String(field)}: ${String(text ?? message)}`] : []
  })
  if (lines.length === 0) {
    const { resource_type, key } = details ?? {}
    const resource = blueprint.resources.find(
      ({ type, located }) =>
        type === resource_type && located.members?.get('key')?.located.value === key,
    )
    if (!resource) return error
    lines.push(`${placeText(resource.located.place)}: ${message}`)
  }
  return new Mistake([`${code}: ${message}`, ...lines].join('\n'))
}

function targetOf(
  blueprint: Blueprint,
  transport: Transport,
  prune: boolean,
  shell: Shell,
): Target {
  const { request } = requestOf(blueprint)
  const call: Target['call'] = async (mode, plan_id) => {
    const input = {
      ...request,
      mode,
      include,
      ...(prune && { prune }),
      ...(plan_id !== undefined && { plan_id }),
    }
    for (let attempt = 1; ; attempt++)
      try {
        return (await transport.call(api['blueprint.apply'], input)) as ApplyResult
      } catch (error) {
        const busy = error instanceof BatonError && error.code === 'blueprint_busy'
        if (!busy || attempt === BUSY.tries) throw error
        if (attempt === 1) shell.note('(another request is changing this blueprint; waiting)')
        await transport.pause(BUSY.pause)
      }
  }
  return { blueprint, call }
}

const asked = async <T>(blueprint: Blueprint, call: Promise<T>): Promise<T> => {
  try {
    return await call
  } catch (error) {
    throw explained(error, blueprint)
  }
}

async function run(
  command: Command,
  shell: Shell,
  { plan: onlyPlan, texts = false }: { readonly plan?: boolean; readonly texts?: boolean },
): Promise<void> {
  const flags = command.optsWithGlobals<Flags>()
  const isPlan = onlyPlan ?? flags.plan === true
  const needsQuestion = !isPlan && !flags.yes
  if (needsQuestion && flags.json) throw new Mistake('--json requires --plan or --yes.')
  const blueprints = readBlueprints(flags.file, shell.env, overridesOf(flags))
  if (needsQuestion && !shell.confirm)
    throw new Mistake(
      'There is no terminal on which the plan could be confirmed: pass --yes to perform it, or ' +
        '--plan to only show it.',
    )
  const { transport } = client({
    ...connectionOf(flags, shell.env),
    ...outlastingRestarts(shell),
    timeout: TIMEOUT_MS,
  })
  const targets = blueprints.map((one) => targetOf(one, transport, flags.prune === true, shell))
  const plans: { readonly target: Target; readonly plan: ApplyResult }[] = []
  for (const target of targets) {
    const plan = await asked(target.blueprint, target.call('preview'))
    plans.push({ target, plan })
    if (!flags.json) shell.print(planLines(plan, target.blueprint, texts).join('\n'))
  }
  const changing = plans.filter(({ plan, target }) => !isEmpty(plan, target.blueprint))
  if (isPlan) {
    if (flags.json)
      shell.print(
        JSON.stringify(
          plans.map(({ plan }) => plan),
          null,
          2,
        ),
      )
    if (changing.length > 0) process.exitCode = EXIT_CHANGES
    return
  }
  const pending = plans.filter(
    ({ plan, target }) => !isEmpty(plan, target.blueprint) || setsVersion(plan, target.blueprint),
  )
  if (pending.length === 0 && !flags.json) shell.note('There is nothing to do.')
  if (changing.length > 0 && !(await isConfirmed(shell, flags))) return
  const results: ApplyResult[] = []
  for (const { target, plan } of pending) {
    const result = await perform(target, plan, shell, flags)
    if (!result) return
    results.push(result)
    if (!flags.json) shell.print(resultLine(result))
  }
  if (flags.json) shell.print(JSON.stringify(results, null, 2))
}

/** Asks for confirmation. Sets the exit code if the user does not confirm. */
async function isConfirmed(shell: Shell, { yes }: Flags): Promise<boolean> {
  if (yes) return true
  const answer = await shell.confirm?.('Perform this plan?')
  if (answer) return true
  shell.note('Nothing was changed.')
  process.exitCode = answer === undefined ? EXIT_INTERRUPTED : 1
  return false
}

/**
 * Performs a plan. If the project has changed since, makes a new plan and asks again. Returns
 * undefined if the user does not confirm the new plan.
 */
async function perform(
  { blueprint, call }: Target,
  first: ApplyResult,
  shell: Shell,
  flags: Flags,
): Promise<ApplyResult | undefined> {
  const interrupt = () => {
    shell.note('Interrupted: the service may complete the request. Run the command again to see.')
    process.exit(EXIT_INTERRUPTED)
  }
  let plan = first
  for (let plans = 1; ; plans++) {
    process.once('SIGINT', interrupt)
    try {
      return await call('apply', plan.plan_id)
    } catch (error) {
      const isOutdated = error instanceof BatonError && error.code === 'blueprint_plan_outdated'
      if (!isOutdated || plans === MAX_PLANS) throw explained(error, blueprint)
    } finally {
      process.off('SIGINT', interrupt)
    }
    shell.note('The project has changed since the plan was made. This is the new plan:')
    plan = await asked(blueprint, call('preview'))
    if (!flags.json) shell.print(planLines(plan, blueprint, false).join('\n'))
    if (!isEmpty(plan, blueprint) && !(await isConfirmed(shell, flags))) return undefined
  }
}
