/**
 * Plans a blueprint, and applies exactly the plan that was shown.
 *
 * A plan is valid only for the request and the choices from which it was made, so it is replaced by
 * a new one when they change.
 */
import { useEffect, useRef, useState } from 'preact/hooks'
import type { ApplyRequest, ApplyResult } from '../../../protocol/blueprints/schema.ts'
import { ApiError, call } from '../../api/client.ts'

/** The additions that the console requests with a plan. */
const INCLUDED = ['plan', 'drift', 'orphans', 'further_types'] as const

/** The options of the request that a person chooses. */
export interface ApplyOptions {
  /** Whether resources are protected; '' leaves their protection as it is. */
  readonly protect: '' | 'on' | 'off'
  readonly prune: boolean
}
/** How far the blueprint has come. `none` is also the step after a plan that failed. */
type Step =
  | { readonly kind: 'none' | 'planning' }
  | { readonly kind: 'planned' | 'applying' | 'applied'; readonly result: ApplyResult }
interface Applying {
  readonly step: Step
  /** The error of the last request, if it failed. */
  readonly error: ApiError | undefined
  /** Requests a new plan. */
  readonly plan: () => Promise<void>
  readonly apply: (planned: ApplyResult) => Promise<void>
}

/**
 * Requests a plan at first, and after each change of the arguments.
 * @param request undefined while there is nothing that can be planned.
 */
export function useApply(
  project: string,
  request: ApplyRequest | undefined,
  options: ApplyOptions,
): Applying {
  const [step, setStep] = useState<Step>({ kind: 'none' })
  const [error, setError] = useState<ApiError>()
  /** Number of the newest request. Responses to earlier requests are ignored. */
  const newest = useRef(0)
  const send = async (
    wanted: ApplyRequest,
    more: { readonly mode: 'preview' | 'apply'; readonly plan_id?: string },
  ): Promise<ApplyResult> =>
    call('blueprint.apply', {
      project,
      include: [...INCLUDED],
      ...wanted,
      ...(options.protect !== '' && { protect_resources: options.protect === 'on' }),
      ...(options.prune && { prune: true }),
      ...more,
    })
  /**
   * Shows the step `running` during the request `after`, and then the step that `after` returns. If
   * the request fails, shows the step `failed`, with the error if the service returned it.
   */
  const attempt = async (
    running: Step,
    after: () => Promise<Step>,
    failed: Step,
  ): Promise<void> => {
    const number = ++newest.current
    setStep(running)
    setError(undefined)
    try {
      const next = await after()
      if (number === newest.current) setStep(next)
    } catch (failure) {
      if (number === newest.current) setStep(failed)
      if (!(failure instanceof ApiError)) throw failure
      if (number === newest.current) setError(failure)
    }
  }
  const plan = async (): Promise<void> => {
    if (!request) return
    await attempt(
      { kind: 'planning' },
      async () => ({ kind: 'planned', result: await send(request, { mode: 'preview' }) }),
      { kind: 'none' },
    )
  }
  const apply = async (planned: ApplyResult): Promise<void> => {
    if (!request) return
    const { plan_id } = planned
    await attempt(
      { kind: 'applying', result: planned },
      async () => ({
        kind: 'applied',
        result: await send(request, {
          mode: 'apply',
          ...(plan_id !== undefined && { plan_id }),
        }),
      }),
      { kind: 'planned', result: planned },
    )
  }
  useEffect(() => {
    newest.current++
    setStep({ kind: 'none' })
    setError(undefined)
    void plan()
  }, [request, options])
  return { step, error, plan, apply }
}
