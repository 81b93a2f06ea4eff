/** Deliberate faults, which the properties of `apply.model.test.ts` must detect. */
import type { Outcome, World } from '../../../gateway/ports.ts'
import type { InternalBinding } from '../../../protocol/blueprints/stored.ts'
import { resourceFacts } from '../../../protocol/blueprints/types.ts'
import type { Command } from '../../../protocol/entry.ts'
import { isRefusal } from '../../../protocol/errors.ts'
import type { Plant } from './world.ts'

interface Planted extends Plant {
  readonly detectedBy: 'repeats' | 'deaths' | 'races'
  /**
   * A seed with which the first run detects the fault. Present if other seeds detect the fault only
   * after many runs. A change to the generators may require another seed.
   */
  readonly seed?: number
}
/**
 * Returns a function that wraps a world. In the wrapped world, `change` can answer a command in
 * place of the actor.
 */
const answering =
  (change: (command: Command, world: World) => Promise<Outcome> | undefined) =>
  (world: World): World =>
    ({
      ...world,
      command: async (command: Command) =>
        (await change(command, world)) ?? world.commandRow(command),
      commandRow: async (command: Command) =>
        (await change(command, world)) ?? world.commandRow(command),
    }) as World
const claimOf = ({ input }: Command) =>
  (input as { readonly blueprint?: { readonly binding: InternalBinding } }).blueprint

export const plants: readonly Planted[] = [
  {
    name: 'ids of new resources are not reserved',
    detectedBy: 'deaths',
    seed: 2,
    ports: answering(({ name, input }) =>
      name === 'blueprint.reserve'
        ? Promise.resolve({ reply: { ids: (input as { ids: object }).ids } })
        : undefined,
    ),
  },
  {
    name: 'a binding is stored in a later commit',
    detectedBy: 'deaths',
    seed: 2,
    ports: answering((command, world) => {
      const claim = claimOf(command)
      if (!claim || !command.name.endsWith('.create')) return undefined
      const { blueprint: _, ...input } = command.input as { blueprint: unknown }
      return world.commandRow({ ...command, input }).then(async (outcome) => {
        if (isRefusal(outcome)) return outcome
        const resource_id = (outcome.reply as { readonly id: string }).id
        const { owner } = resourceFacts[claim.binding.resource_type]
        const bound = await world.commandRow({
          ...command,
          kind: owner,
          id: owner === 'project' ? command.project : resource_id,
          command_id: `${command.command_id}.bind`,
          name: 'blueprint.bind',
          input: { blueprint: { binding: { ...claim.binding, resource_id } } },
        })
        return isRefusal(bound) ? bound : outcome
      })
    }),
  },
  {
    name: 'resources are not sorted by their references',
    detectedBy: 'repeats',
    install() {
      const facts = resourceFacts.toolkit as { tier: number }
      const { tier } = facts
      facts.tier = 9
      return () => {
        facts.tier = tier
      }
    },
  },
  {
    name: 'a plan is based on a view that lags behind',
    detectedBy: 'repeats',
    ports: (world) => ({
      ...world,
      view: (async (project: string, name: string, input: object) =>
        name === 'blueprint_bindings' && !('identity' in input)
          ? { items: [], more: false }
          : world.view(project, name as never, input as never)) as World['view'],
    }),
  },
  {
    name: 'a blueprint can have two holders',
    detectedBy: 'races',
    ports: (() => {
      const holders = new Set(['blueprint.hold', 'blueprint.reserve', 'blueprint.apply'])
      return answering(({ name, input }) => {
        if (!holders.has(name)) return undefined
        const { holder, ids, result } = input as Record<string, unknown>
        if (name === 'blueprint.apply' && holder === '') return undefined
        const reply =
          name === 'blueprint.hold' ? { holder } : name === 'blueprint.reserve' ? { ids } : result
        return Promise.resolve({ reply })
      })
    })(),
  },
]
