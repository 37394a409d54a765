"""Local low rank for series of images and volumes, stage by stage: see docs/design.md."""
