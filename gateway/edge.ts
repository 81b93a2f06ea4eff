/** Assembles the `Edge` of a gateway: the state that all of its requests share. */
import type { Authentication } from './auth/authenticate.ts'
import { createLimits } from './auth/rate.ts'
import type { Edge } from './call.ts'
import { callParts } from './command.ts'
import type { Directory } from './directory.ts'
import { createBodyMemory, createPublicBodyMemory } from './files/transfers.ts'
import { createUploadTurns } from './files/upload.ts'
import { openLeaseGate } from './lease-gate.ts'
import type { World } from './ports.ts'
import { openSessionVisibility } from './sessions/visibility.ts'
import { openFollowers } from './streams/followers.ts'

/**
 * Creates the edge of a gateway, with the configured limits and without followers or waiting
 * requests.
 */
export const createEdge = (
  world: World,
  directory: Directory,
  authentication: Authentication,
): Edge => ({
  world,
  becomesFresh: openLeaseGate(world),
  directory,
  authentication,
  limits: createLimits(world),
  followers: openFollowers(world),
  bodyMemory: createBodyMemory(),
  publicBodyMemory: createPublicBodyMemory(),
  uploadTurns: createUploadTurns(world),
  parts: callParts,
  sessionVisibility: openSessionVisibility({ world, directory }),
})
