/**
 * `baton nats-permissions`: prints the permissions that the NATS user of a node needs, in the
 * syntax of the nats-server configuration.
 */
import type { Command } from 'commander'
import { readConfig } from '../config.ts'
import {
  type AccountRole,
  accountRoles,
  configurationOf,
  permissionsOf,
} from '../nats/server/permissions.ts'
import { StartFault } from '../process/fault.ts'

interface Given {
  readonly roles: string
  readonly partitions?: string
  readonly natsPrefix?: string
  readonly natsDomain?: string
}

/**
 * Parses a list of roles.
 * @throws StartFault that names an unknown role.
 */
function rolesOf(text: string): AccountRole[] {
  return text.split(',').map((word) => {
    const role = accountRoles.find((one) => one === word.trim())
    if (role) return role
    throw new StartFault(
      `--roles contains ${JSON.stringify(word)}: it must be one or more of ${accountRoles.join(', ')}`,
    )
  })
}

function print({ roles, ...settings }: Given): void {
  const flags = {
    '--partitions': settings.partitions,
    '--nats-prefix': settings.natsPrefix,
    '--nats-domain': settings.natsDomain,
  }
  const read = readConfig(
    process.env,
    Object.entries(flags).flatMap(([flag, value]) => (value === undefined ? [] : [flag, value])),
  )
  if ('faults' in read) throw new StartFault(read.faults.join('\n'))
  const { partitions, nats_access } = read.config
  process.stdout.write(
    `# Permissions of a NATS user of Baton for: ${rolesOf(roles).join(', ')}\n${configurationOf(
      permissionsOf(rolesOf(roles), {
        partitions,
        ...(nats_access.prefix !== undefined && { prefix: nats_access.prefix }),
        ...(nats_access.domain !== undefined && { domain: nats_access.domain }),
      }),
    )}`,
  )
}

/** Adds `baton nats-permissions` to the program. */
export function addPermissionsCommand(program: Command): void {
  program
    .command('nats-permissions')
    .description(
      'Print the permissions that the NATS user of a node needs, for the configuration of nats-server',
    )
    .option(
      '--roles <list>',
      `purposes of the user: ${accountRoles.join(', ')}`,
      'gateway,shards,views,executor,hosts',
    )
    .option('--partitions <n>', 'partitions of the installation; by default BATON_PARTITIONS')
    .option('--nats-prefix <text>', 'prefix of the installation; by default BATON_NATS_PREFIX')
    .option(
      '--nats-domain <text>',
      'JetStream domain of the installation; by default BATON_NATS_DOMAIN',
    )
    .addHelpText(
      'after',
      '\n`provision` is required for the first start of an installation, ' +
        'and for a start that changes its streams.\n\n  baton nats-permissions --roles gateway\n' +
        '  baton nats-permissions --roles shards,provision --nats-prefix acme\n',
    )
    .action(print)
}
