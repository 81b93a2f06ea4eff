/**
 * The options of `baton backup` and `baton restore`. The modules that execute these commands are
 * loaded only when a command is called.
 */
import type { Command } from 'commander'
import type { BackupGiven, RestoreGiven } from './backup.ts'

/** Adds `baton backup` and `baton restore` to the program. */
export function addBackupCommands(program: Command): void {
  const place = (command: Command) =>
    command
      .option(
        '--nats <urls>',
        'NATS servers, comma-separated; by default BATON_NATS, or the server of the data folder',
      )
      .option('--data <folder>', 'data folder of the node; by default BATON_DATA, or .baton')
  place(
    program
      .command('backup')
      .description('Back up the whole system to a folder or a .tar file while it runs')
      .requiredOption(
        '--to <path>',
        'destination: a path ending in .tar is one file, any other path is a new folder',
      ),
  )
    .addHelpText(
      'after',
      '\nThe backup contains everything that was acknowledged before it began. ' +
        'It omits snapshots, leases and views, which are\nrebuilt. ' +
        'It contains only the hash of the owner key, not the key.\n\n' +
        '  baton backup --to /backups/2026-11-21.tar\n' +
        '  baton backup --nats nats://a,nats://b,nats://c --to /backups/2026-11-21\n',
    )
    .action(async (given: BackupGiven) => (await import('./backup.ts')).backup(given))
  place(
    program
      .command('restore')
      .description('Restore a backup into NATS servers without a Baton installation')
      .requiredOption('--from <path>', 'folder or .tar file of the backup'),
  )
    .option(
      '--replicas <n>',
      'replicas of each stream: 1, 3 or 5; by default BATON_REPLICAS, or as in the backup (1 without --nats)',
    )
    .option('--again', 'first delete what an interrupted restore left')
    .addHelpText(
      'after',
      '\nStop all nodes first, and start them afterwards. ' +
        'Views are rebuilt automatically; runs continue where they were.\n\n' +
        '  baton restore --from /backups/2026-11-21.tar\n' +
        '  baton restore --nats nats://a,nats://b,nats://c --from /backups/2026-11-21 --replicas 3\n',
    )
    .action(async (given: RestoreGiven) => (await import('./backup.ts')).restore(given))
}
