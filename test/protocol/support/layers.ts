/** Helpers that compute the effective definition of layers, and the fields that have faults. */
import {
  type EffectiveDefinition,
  effectiveDefinition,
  type Layers,
} from '../../../protocol/agents/definition.ts'

/** Returns the effective definition of layers that have no faults. */
export function given(layers: Layers): EffectiveDefinition {
  const definition = effectiveDefinition(layers)
  if ('faults' in definition) throw new Error(JSON.stringify(definition.faults))
  return definition
}
/** Returns the fields in which the layers have faults. */
export function faults(layers: Layers): string[] {
  const definition = effectiveDefinition(layers)
  return 'faults' in definition ? definition.faults.map(({ field }) => field) : []
}
